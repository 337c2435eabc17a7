/** Svelte context: which reply of the round is marked best. Set by the round, read by its cards. */
import { getContext, setContext } from 'svelte';

const KEY = Symbol('best');

export function provideBest(best: () => string | null): void {
  setContext(KEY, best);
}

/** Outside a round nothing is the best. */
export function useBest(): () => string | null {
  return getContext<(() => string | null) | undefined>(KEY) ?? (() => null);
}
