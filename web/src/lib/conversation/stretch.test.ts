import { expect, it } from 'vitest';
import { Read } from '$lib/live/rounds';
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
});

it('reads the round and the reply from an address', () => {
  expect(placeIn('#round-4')).toEqual({ round: 4, replyId: null });
  expect(placeIn('#round-12/01JABC')).toEqual({ round: 12, replyId: '01JABC' });
  for (const hash of ['', '#round-', '#round-x', '#top']) expect(placeIn(hash)).toBeNull();
});

it('knows which rounds were read, and forgets them when a gap came between', () => {
  const read = new Read();
  read.snapshot(36, false, 0);
  expect(read.missing(34, 40)).toEqual({ first: 34, last: 35 });
  read.page([round(8), round(9)]);
  expect(read.missing(7, 10)).toEqual({ first: 7, last: 10 });
  expect(read.missing(8, 9)).toBeNull();
  read.snapshot(38, true, 40);
  expect(read.missing(36, 41)).toBeNull();
  read.snapshot(96, false, 41);
  expect(read.missing(8, 100)).toEqual({ first: 8, last: 95 });
});
