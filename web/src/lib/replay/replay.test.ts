import { describe, expect, it } from 'vitest';
import type { Replay } from '$lib/api/types';
import { capOf, priceOf, standingOf } from './replay';

const replay: Replay = {
  id: 'b1',
  source_id: 'c1',
  from_round: 2,
  to_round: 4,
  done_round: 1,
  cap_micros: null,
  spent_micros: 0,
  state: 'running',
  reason: '',
  created_by: 'u1',
  created_at: 0,
};

describe('a replay', () => {
  it('says what it would cost, or that nobody knows', () => {
    expect(priceOf({ rounds: 3, cost_micros: 120_000, per_round: [] })).toBe('3 rounds, about $0.12');
    expect(priceOf({ rounds: 1, cost_micros: null, per_round: [null] })).toBe('1 round, price unknown');
  });

  it('says how far it is and why it ended', () => {
    expect(standingOf(replay)).toBe('Round 1 of 3 is being asked again.');
    expect(standingOf({ ...replay, state: 'complete', done_round: 4 })).toBe(
      'All 3 rounds were asked again.',
    );
    expect(standingOf({ ...replay, state: 'stopped', done_round: 2, reason: 'Stopped by a person.' })).toBe(
      'Stopped after 1 of 3 rounds. Stopped by a person.',
    );
  });

  it('takes a cap as it is typed', () => {
    expect([capOf(''), capOf('$0.50'), capOf('1,5'), capOf('much')]).toEqual([null, 500_000, 1_500_000, NaN]);
  });
});
