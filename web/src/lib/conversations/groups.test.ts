import { describe, expect, it } from 'vitest';
import type { Conversation } from '../api/types';
import { groupConversations } from './groups';

const NOON = new Date(2026, 5, 18, 12).getTime();
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const conversation = (id: string, agoMs: number, more: Partial<Conversation> = {}) =>
  ({
    id,
    title: id,
    pinned: false,
    parent_id: null,
    created_at: NOON - agoMs,
    updated_at: NOON - agoMs,
    ...more,
  }) as Conversation;

const shown = (conversations: Conversation[]) =>
  groupConversations(conversations, NOON).map(({ label, nodes }) => [
    label,
    nodes.map((node) => node.conversation.id),
  ]);

describe('the list of conversations', () => {
  it('is grouped by day, newest first, pinned on top', () => {
    expect(
      shown([
        conversation('old', 40 * DAY),
        conversation('morning', 3 * HOUR),
        conversation('now', 0),
        conversation('midnight', 11.9 * HOUR),
        conversation('last night', 13 * HOUR),
        conversation('week', 6 * DAY),
        conversation('kept', 90 * DAY, { pinned: true }),
      ]),
    ).toEqual([
      ['Pinned', ['kept']],
      ['Today', ['now', 'morning', 'midnight']],
      ['Yesterday', ['last night']],
      ['Last week', ['week']],
      ['Older', ['old']],
    ]);
  });

  it('hangs a branch from its parent, which counts as touched with it', () => {
    const groups = groupConversations(
      [
        conversation('parent', 9 * DAY),
        conversation('branch', HOUR, { parent_id: 'parent' }),
        conversation('twig', 2 * HOUR, { parent_id: 'branch' }),
      ],
      NOON,
    );
    expect(groups.map((group) => group.label)).toEqual(['Today']);
    expect(groups[0]!.nodes[0]!.branches[0]!.branches[0]!.conversation.id).toBe('twig');
  });

  it('shows a branch by itself when its parent is not there', () => {
    expect(shown([conversation('branch', 0, { parent_id: 'gone' })])).toEqual([['Today', ['branch']]]);
  });
});
