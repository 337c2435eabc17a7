/**
 * Render budget: the time one text may take on the main thread. It refills while nothing is drawn, so half of the time stays free.
 * What took far too long is not paid for in full: a page that was slow once would stay half drawn for as long again.
 */

const FULL_MS = 400;
const REFILL = 0.5;

export class RenderBudget {
  #left = FULL_MS;
  #last: number;

  constructor(private readonly now: () => number = () => performance.now()) {
    this.#last = now();
  }

  /** Does the work if there is time left for it; false when there is not. */
  spend(work: () => void): boolean {
    const began = this.now();
    this.#left = Math.min(FULL_MS, this.#left + (began - this.#last) * REFILL);
    this.#last = began;
    if (this.#left <= 0) return false;
    work();
    this.#last = this.now();
    this.#left = Math.max(-FULL_MS, this.#left - (this.#last - began));
    return true;
  }
}
