/** Requests an estimate when typing pauses (debounced); a newer request cancels the older one. */
import { request } from '$lib/api/client';
import type { Estimate, NewEstimate } from '$lib/api/types';

const PAUSE_MS = 400;

export class EstimateRequest {
  found = $state.raw<Estimate | null>(null);

  constructor(
    private readonly ask: (wish: NewEstimate, signal: AbortSignal) => Promise<Estimate> = askServer,
    private readonly pauseMs: number = PAUSE_MS,
  ) {}

  /** Returns how to call it off. What cannot be reckoned is not shown. */
  soon(wish: NewEstimate): () => void {
    const calling = new AbortController();
    const timer = setTimeout(() => void this.#reckon(wish, calling.signal), this.pauseMs);
    return () => {
      clearTimeout(timer);
      calling.abort();
    };
  }

  async #reckon(wish: NewEstimate, signal: AbortSignal): Promise<void> {
    const found = await this.ask(wish, signal).catch(() => null);
    if (!signal.aborted) this.found = found;
  }
}

function askServer(wish: NewEstimate, signal: AbortSignal): Promise<Estimate> {
  return request<Estimate>('POST', '/api/estimate', wish, { signal });
}
