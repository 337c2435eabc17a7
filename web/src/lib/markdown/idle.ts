/** Runs work when its element is in view and the browser is idle. */

const idle: (work: () => void) => void =
  typeof requestIdleCallback === 'function'
    ? (work) => void requestIdleCallback(work, { timeout: 1_000 })
    : (work) => void setTimeout(work, 30);

const waiting = new WeakMap<Element, () => void>();

let watcher: IntersectionObserver | null = null;

/** Runs the work once the element is near the view and the page is idle; the returned function calls it off. */
export function whenIdle(element: Element, work: () => void): () => void {
  if (typeof IntersectionObserver === 'undefined') {
    idle(work);
    return () => {};
  }
  watcher ??= new IntersectionObserver(arrived, { rootMargin: '400px' });
  waiting.set(element, work);
  watcher.observe(element);
  return () => {
    waiting.delete(element);
    watcher?.unobserve(element);
  };
}

function arrived(entries: IntersectionObserverEntry[]): void {
  for (const { isIntersecting, target } of entries) {
    const work = waiting.get(target);
    if (!isIntersecting || !work) continue;
    watcher?.unobserve(target);
    idle(() => {
      if (waiting.delete(target)) work();
    });
  }
}
