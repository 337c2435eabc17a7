/** Runs a single search request at a time: a new request cancels the one before, and a late answer is ignored. */
import type { Hit, SearchAnswer } from '$lib/api/types';

type Find = (signal: AbortSignal) => Promise<SearchAnswer>;

export class SearchRequest {
  /** The last answer stays while the next is looked for. */
  answer = $state.raw<SearchAnswer | null>(null);
  problem = $state('');
  isLooking = $state(false);
  isAdding = $state(false);
  #calledOff = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Null when there is nothing to look for. */
  ask(find: Find | null, afterMs = 0): void {
    this.stop();
    this.isLooking = find !== null;
    if (find === null) this.#show(null);
    else if (afterMs === 0) void this.#look(find);
    else this.#timer = setTimeout(() => void this.#look(find), afterMs);
  }

  /** The next page, below those that are shown. */
  async more(find: Find): Promise<void> {
    const { signal } = (this.#calledOff = new AbortController());
    this.isAdding = true;
    try {
      const page = await find(signal);
      const before = this.answer?.hits ?? [];
      const isNew = ({ chunk_id }: Hit) => before.every((each) => each.chunk_id !== chunk_id);
      const hits = [...before, ...page.hits.filter(isNew)];
      if (!signal.aborted) this.answer = { ...page, hits };
    } catch (reason) {
      if (!signal.aborted) this.problem = reason instanceof Error ? reason.message : 'Try again.';
    }
    this.isAdding = false;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#calledOff.abort();
    this.isLooking = false;
  }

  async #look(find: Find): Promise<void> {
    const { signal } = (this.#calledOff = new AbortController());
    try {
      const answer = await find(signal);
      if (!signal.aborted) this.#show(answer);
    } catch (reason) {
      if (!signal.aborted) this.#show(null, reason instanceof Error ? reason.message : 'Try again.');
    }
  }

  #show(answer: SearchAnswer | null, problem = ''): void {
    this.answer = answer;
    this.problem = problem;
    this.isLooking = false;
  }
}
