import { expect, it } from 'vitest';
import type { Message } from '$lib/api/types';
import { latestOf } from './latestReplies';

const said = (id: string, seat: number | null, more: Partial<Message> = {}) =>
  ({ id, voice: seat === null ? null : { seat }, replaces_id: null, step: 'answer', ...more }) as Message;

it('shows of each reply its newest version, by seat, and the synthesis last', () => {
  const shown = latestOf([
    said('question', null),
    said('synthesis', 1, { step: 'synthesis' }),
    said('outline', 1, { step: 'outline' }),
    said('second', 2),
    said('first', 1),
    said('first again', 1, { replaces_id: 'first' }),
  ]);
  expect(shown.map((message) => message.id)).toEqual(['first again', 'second', 'synthesis']);
});
