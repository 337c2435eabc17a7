/** Measures the docked composer, so that toasts and other floating elements stay above it. */
import type { Attachment } from 'svelte/attachments';

const NAME = '--dock-height';

export const dock: Attachment<HTMLElement> = (element) => {
  const page = document.documentElement.style;
  const watcher = new ResizeObserver(() => page.setProperty(NAME, `${element.offsetHeight}px`));
  watcher.observe(element);
  return () => {
    watcher.disconnect();
    page.removeProperty(NAME);
  };
};
