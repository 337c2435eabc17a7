import { describe, expect, it } from 'vitest';
import type { Conversation, Removal } from '../api/types';
import { whatGoes, whatGoesWith } from './removal';

const conversation = (title: string, parent_id: string | null = null) =>
  ({ title, parent_id }) as Conversation;
const removal = (more: Partial<Removal>): Removal => ({
  conversations: 1,
  rounds: 0,
  replies: 0,
  titles: [],
  ...more,
});

describe('before something is deleted it is said', () => {
  it('what goes with a branch, and that the rest stays', () => {
    expect(
      whatGoes(conversation('Small', 'main'), removal({ rounds: 2, replies: 5, titles: ['Small'] })),
    ).toBe('2 rounds and 5 replies will go. The conversation it left from stays.');
  });

  it('which branches hang on it', () => {
    const tree = removal({ conversations: 5, rounds: 1, replies: 1, titles: ['Root', 'A', 'B', 'C', 'D'] });
    expect(whatGoes(conversation('Root'), tree)).toBe(
      '1 round and 1 reply will go. With it go 4 branches: “A”, “B”, “C” and others. ' +
        'For everyone and for good. To keep it out of sight, archive it instead.',
    );
    expect(whatGoes(conversation('', 'main'), removal({ conversations: 2 }))).toBe(
      'Nothing was said in it yet. With it goes 1 branch. The conversation it left from stays.',
    );
  });

  it('what goes with a reply or a question, and who will miss it', () => {
    expect(whatGoesWith(false, { rounds: 0, replies: 1, branches: 0 })).toBe(
      'This reply will go, for everyone and for good.',
    );
    expect(whatGoesWith(false, { rounds: 0, replies: 3, branches: 1 })).toBe(
      'This reply and 2 other versions of it will go, for everyone and for good. ' +
        'A branch that reads it will go on without it.',
    );
    expect(whatGoesWith(true, { rounds: 1, replies: 2, branches: 2 })).toBe(
      'The question and 2 replies will go. 2 branches that read it will go on without it.',
    );
  });
});
