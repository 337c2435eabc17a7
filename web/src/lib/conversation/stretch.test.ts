import { expect, it } from 'vitest';
import { missingOf } from '$lib/live/rounds';
import { question } from './samples';
import { rowsOf } from './rows';
import { firstJoined, lastJoined, placeIn } from './stretch';

const round = (number: number, role: 'user' | 'advisor' = 'user') => ({
  number,
  messages: [question({ id: `m${number}`, turn_id: `t${number}`, round_number: number, role })],
});

it('joins rounds up to the next gap, either way', () => {
  const rows = rowsOf(
    [3, 4, 5, 98, 99, 100].map((number) => round(number)),
    [],
    [],
  );
  expect(firstJoined(rows, 5)).toBe(3);
  expect(lastJoined(rows, 3)).toBe(5);
  expect(firstJoined(rows, 100)).toBe(98);
});

it('takes a round of which only a late reply is here for one that was not read', () => {
  const rows = rowsOf([round(6, 'advisor'), round(7)], [], []);
  expect(firstJoined(rows, 7)).toBe(7);
  expect(missingOf([round(6, 'advisor'), round(7)], 5, 7)).toEqual({ first: 5, last: 6 });
  expect(missingOf([round(7)], 7, 7)).toBeNull();
});

it('reads the round and the reply from an address', () => {
  expect(placeIn('#round-4')).toEqual({ round: 4, replyId: null });
  expect(placeIn('#round-12/01JABC')).toEqual({ round: 12, replyId: '01JABC' });
  for (const hash of ['', '#round-', '#round-x', '#top']) expect(placeIn(hash)).toBeNull();
});
