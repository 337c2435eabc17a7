/** Svelte context: the vote of a round whose names are hidden. Set by the round, used by its cards. */
import { getContext, setContext } from 'svelte';

export interface Voting {
  /** All have finished. */
  isReady: boolean;
  /** The element that asks the question. */
  questionId: string;
}

const KEY = Symbol('voting');

/** Null where the names are known, or one may not vote. */
export function provideVoting(voting: () => Voting | null): void {
  setContext(KEY, voting);
}

export function useVoting(): () => Voting | null {
  return getContext<(() => Voting | null) | undefined>(KEY) ?? (() => null);
}
