/** Templates for a first question: a mode, a number of voices, and the beginning of the text. */
import type { Mind } from '$lib/council/minds';
import { modeNamed } from '$lib/council/modes';
import { differentMinds, type Invitable } from '$lib/council/table';

export interface Starter {
  title: string;
  sentence: string;
  mode: string;
  /** The number of voices it seats, if that many are available. */
  minds: number;
  text: string;
}

export const STARTERS: Starter[] = [
  {
    title: 'Settle a decision',
    sentence: 'Two options, three recommendations.',
    mode: 'parallel',
    minds: 3,
    text: 'I have to choose between two options and want a clear recommendation, and what would change it.\n\nThe first: ',
  },
  {
    title: 'Ask a brain trust',
    sentence: 'Independent answers, then one summary.',
    mode: 'brain_trust',
    minds: 3,
    text: 'Advise me on this, each from your own side, and then tell me where you agree and what I should do first.\n\nThe situation: ',
  },
  {
    title: 'Check a draft',
    sentence: 'One improves it, the others mark the errors.',
    mode: 'second_opinion',
    minds: 2,
    text: 'Improve this draft without changing what it says. The other voices then mark what is wrong or unsupported.\n\n',
  },
  {
    title: 'Find the weak point',
    sentence: 'Each voice challenges the one before.',
    mode: 'relay',
    minds: 3,
    text: 'Here is a plan. Name the weakest point that nobody before you has named, and the cheapest protection.\n\nThe plan: ',
  },
  {
    title: 'Explain it three ways',
    sentence: 'For a beginner, an engineer, a board.',
    mode: 'parallel',
    minds: 3,
    text: 'Explain this three ways: for a beginner, for an engineer, and for a board in two sentences.\n\n',
  },
];

/** Returns the voices a starter seats, as its dots show; fewer if the mode allows it, none if it could not be asked. */
export function mindsFor({ mode, minds }: Starter, wanted: Mind[], invitable: Invitable): Mind[] {
  const found = differentMinds(wanted, invitable, minds);
  return found.length < Math.max(2, modeNamed(mode).least) ? [] : found;
}
