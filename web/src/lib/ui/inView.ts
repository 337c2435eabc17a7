/** Calls once when an element is about to come into view. */
import type { Attachment } from 'svelte/attachments';

// Of the box that scrolls; a browser that does not know it tells when the element is seen.
const AHEAD: IntersectionObserverInit & { scrollMargin: string } = { scrollMargin: '600px' };

export function whenInView(told: () => void): Attachment<HTMLElement> {
  return (element) => {
    const watch = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting) told();
    }, AHEAD);
    watch.observe(element);
    return () => watch.disconnect();
  };
}
