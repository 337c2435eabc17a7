/** Modes: how voices take turns. A new mode is one more entry here, once the server has it. */
import { inWords } from '$lib/format/numbers';

export interface Mode {
  id: string;
  name: string;
  sentence: string;
  /** The name of its drawing. */
  picture: 'quick' | 'parallel' | 'second' | 'trust' | 'relay' | 'debate' | 'review';
  /** The least number of voices it seats; `most` is the greatest. */
  least: number;
  most: number;
  /** True when several voices speak, so that the visibility of their replies matters. */
  isShared: boolean;
  /** A chair writes a synthesis at the end. */
  hasChair: boolean;
  /** The first voice answers and the others review it. */
  isReviewed: boolean;
  /** The voices are asked in turn. */
  isInTurn: boolean;
  /** Names of its replies, by step. */
  stages: Record<string, string>;
}

const SHARED = {
  least: 2,
  most: 8,
  isShared: true,
  hasChair: false,
  isReviewed: false,
  isInTurn: false,
  stages: {},
};

export const MODES: Mode[] = [
  {
    ...SHARED,
    id: 'parallel',
    name: 'Parallel',
    sentence: 'All answer at once, side by side',
    picture: 'parallel',
    least: 1,
  },
  {
    ...SHARED,
    id: 'quick',
    name: 'One model',
    sentence: 'Only one answers',
    picture: 'quick',
    least: 1,
    most: 1,
    isShared: false,
  },
  {
    ...SHARED,
    id: 'second_opinion',
    name: 'Second opinion',
    sentence: 'One answers, the others check it',
    picture: 'second',
    isReviewed: true,
    stages: { answer: 'Answer', critique: 'Second opinions' },
  },
  {
    ...SHARED,
    id: 'brain_trust',
    name: 'Brain trust',
    sentence: 'Independent answers, then one summary',
    picture: 'trust',
    hasChair: true,
    stages: { answer: 'Advisors' },
  },
  {
    ...SHARED,
    id: 'relay',
    name: 'One after another',
    sentence: 'Each reads the answers before its own',
    picture: 'relay',
    isInTurn: true,
  },
  {
    ...SHARED,
    id: 'debate',
    name: 'Debate',
    sentence: 'Opening statements, rebuttals, then a summary',
    picture: 'debate',
    hasChair: true,
    stages: { answer: 'Opening statements', rebuttal: 'Rebuttals' },
  },
  {
    ...SHARED,
    id: 'peer_review',
    name: 'Peer review',
    sentence: 'Answers ranked without names, then a summary',
    picture: 'review',
    hasChair: true,
    stages: { answer: 'Answers', review: 'Reviews without names' },
  },
];

export function modeNamed(id: string): Mode {
  return MODES.find((mode) => mode.id === id) ?? { ...MODES[0]!, id, name: id.replaceAll('_', ' ') };
}

/** Returns the sentence for a table with too few voices for a mode. */
export function tooFew({ name, least }: Mode): string {
  return `${name} needs at least ${inWords(least).toLowerCase()} voices. Add another.`;
}
