/** Svelte context for citations: what a citation opens, for all texts below a component. Without it a citation stays text. */
import { getContext, setContext } from 'svelte';
import type { Citations } from './citations';

const KEY = Symbol('citations');

export function provideCitations(known: Citations): void {
  setContext(KEY, known);
}

export function useCitations(): Citations | undefined {
  return getContext<Citations | undefined>(KEY);
}
