/** Calls once when an element is about to come into view. */
import type { Attachment } from 'svelte/attachments';

// A margin around the scrolling box; a browser without it calls when the element comes into view.
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
