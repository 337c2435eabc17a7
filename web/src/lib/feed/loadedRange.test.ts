import { expect, it } from 'vitest';
import { LoadedRounds } from '$lib/live/rounds';
import { firstJoined, lastJoined, scrollTargetIn } from './loadedRange';

it('joins rounds up to the next gap, either way', () => {
  const read = new LoadedRounds();
  read.snapshot(98, false, 0);
  read.page(3, 5);
  const isRead = (round: number) => read.has(round);
  expect(firstJoined(isRead, 5)).toBe(3);
  expect(lastJoined(isRead, 3, 100)).toBe(5);
  expect(firstJoined(isRead, 100)).toBe(98);
  expect(lastJoined(isRead, 98, 100)).toBe(100);
  read.page(1, 2);
  expect(firstJoined(isRead, 5)).toBe(1);
});

it('reads the round and the reply from an address', () => {
  expect(scrollTargetIn('#round-4')).toEqual({ round: 4, replyId: null });
  expect(scrollTargetIn('#round-12/01JABC')).toEqual({ round: 12, replyId: '01JABC' });
  for (const hash of ['', '#round-', '#round-x', '#top']) expect(scrollTargetIn(hash)).toBeNull();
});

it('knows which rounds were read, and forgets them when a gap came between', () => {
  const read = new LoadedRounds();
  read.snapshot(36, false, 0);
  expect(read.missing(34, 40)).toEqual({ first: 34, last: 35 });
  read.page(8, 9);
  expect(read.missing(7, 10)).toEqual({ first: 7, last: 10 });
  expect(read.missing(8, 9)).toBeNull();
  read.snapshot(38, true, 40);
  expect(read.missing(36, 41)).toBeNull();
  read.snapshot(96, false, 41);
  expect(read.missing(8, 100)).toEqual({ first: 8, last: 95 });
});
