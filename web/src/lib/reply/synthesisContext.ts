/** Svelte context: asks for a synthesis of the round, from its bar and from its replies. */
import { getContext, setContext } from 'svelte';

const KEY = Symbol('synthesis');

/** Null where there is nothing to bring together, or one may not. */
export type Synthesise = () => (() => void) | null;

export function provideSynthesis(synthesise: Synthesise): Synthesise {
  return setContext(KEY, synthesise);
}

export function useSynthesis(): Synthesise {
  return getContext<Synthesise | undefined>(KEY) ?? (() => null);
}
