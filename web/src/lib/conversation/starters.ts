/** Ways to begin: a mode and a first line to go on from. */

export interface Starter {
  title: string;
  sentence: string;
  mode: string;
  /** How many minds it wants at the table. */
  minds: number;
  text: string;
}

export const STARTERS: Starter[] = [
  {
    title: 'Settle a decision',
    sentence: 'Two options, three recommendations.',
    mode: 'parallel',
    minds: 3,
    text: 'I have to choose between two options and want a clear recommendation, with what would change your mind.\n\nThe first: ',
  },
  {
    title: 'Explain it three ways',
    sentence: 'For a beginner, an engineer, a board.',
    mode: 'parallel',
    minds: 3,
    text: 'Explain this three ways: for a beginner, for an engineer, and for a board in two sentences.\n\n',
  },
  {
    title: 'Find what could go wrong',
    sentence: 'Each mind names the risks the others miss.',
    mode: 'parallel',
    minds: 3,
    text: 'Here is a plan. Name the three most likely ways it fails, how I would notice early, and the cheapest protection.\n\nThe plan: ',
  },
  {
    title: 'Get one quick answer',
    sentence: 'One mind, a few sentences.',
    mode: 'quick',
    minds: 1,
    text: 'In at most five sentences: ',
  },
];
