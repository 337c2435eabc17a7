/** Gathers items and hands them over together: at most every 50 ms, and in time with the screen. */
import type { Item } from './items';

const PAUSE_MS = 50;
const HIDDEN_MS = 250;

export class Batch {
  #waiting: Item[] = [];
  #last = 0;
  #isPlanned = false;

  constructor(
    private readonly flush: (items: Item[]) => void,
    private readonly plan: (ms: number, run: () => void) => void = planFrame,
    private readonly now: () => number = () => performance.now(),
  ) {}

  push(items: Item[]): void {
    for (const item of items) this.#waiting.push(item);
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.plan(Math.max(0, this.#last + PAUSE_MS - this.now()), () => this.#release());
  }

  #release(): void {
    this.#isPlanned = false;
    this.#last = this.now();
    const items = this.#waiting;
    this.#waiting = [];
    this.flush(items);
  }
}

/** A hidden tab gets no animation frames, but must not fall behind. */
function planFrame(ms: number, run: () => void): void {
  let isDone = false;
  const once = () => {
    if (!isDone) run();
    isDone = true;
  };
  setTimeout(() => {
    requestAnimationFrame(once);
    setTimeout(once, HIDDEN_MS);
  }, ms);
}
