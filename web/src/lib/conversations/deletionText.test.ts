import { describe, expect, it } from 'vitest';
import type { Conversation, DeletionPreview } from '../api/types';
import { deletionText, messageDeletionText } from './deletionText';

const conversation = (title: string, parent_id: string | null = null) =>
  ({ title, parent_id }) as Conversation;
const removal = (more: Partial<DeletionPreview>): DeletionPreview => ({
  conversations: 1,
  rounds: 0,
  replies: 0,
  titles: [],
  ...more,
});

describe('before something is deleted it is said', () => {
  it('what goes with a branch, and that the rest stays', () => {
    expect(
      deletionText(conversation('Small', 'main'), removal({ rounds: 2, replies: 5, titles: ['Small'] })),
    ).toBe(
      '2 questions and 5 replies will be deleted for everyone. This cannot be undone. ' +
        'The conversation it branched from stays.',
    );
  });

  it('which branches hang on it', () => {
    const tree = removal({ conversations: 5, rounds: 1, replies: 1, titles: ['Root', 'A', 'B', 'C', 'D'] });
    expect(deletionText(conversation('Root'), tree)).toBe(
      '1 question and 1 reply will be deleted for everyone. ' +
        '4 branches will be deleted with it: “A”, “B”, “C” and others. ' +
        'This cannot be undone. To keep it out of sight, archive it instead.',
    );
    expect(deletionText(conversation('', 'main'), removal({ conversations: 2 }))).toBe(
      'It is empty. 1 branch will be deleted with it. This cannot be undone. ' +
        'The conversation it branched from stays.',
    );
  });

  it('what goes with a reply or a question, and who will miss it', () => {
    expect(messageDeletionText(false, { rounds: 0, replies: 1, branches: 0 })).toBe(
      'This reply will be deleted for everyone. This cannot be undone.',
    );
    expect(messageDeletionText(false, { rounds: 0, replies: 3, branches: 1 })).toBe(
      'This reply and 2 other versions of it will be deleted for everyone. This cannot be undone. ' +
        'A branch that uses it continues without it.',
    );
    expect(messageDeletionText(true, { rounds: 1, replies: 2, branches: 2 })).toBe(
      'The question and 2 replies will be deleted for everyone. This cannot be undone. ' +
        '2 branches that use it continue without it.',
    );
  });
});
