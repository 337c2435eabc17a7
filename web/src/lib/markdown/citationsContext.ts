/** What marks in a text lead to, for all texts below a component; without it they stay words. */
import { getContext, setContext } from 'svelte';
import type { Citations } from './citations';

const KEY = Symbol('citations');

export function provideCitations(known: Citations): void {
  setContext(KEY, known);
}

export function useCitations(): Citations | undefined {
  return getContext<Citations | undefined>(KEY);
}
