/** Sentences about a replay: its estimated cost and its progress. Pure. */
import type { Replay, ReplayEstimate } from '$lib/api/types';
import { counted, money, roughMoney } from '$lib/format/numbers';

/** "3 rounds, about $0.12" */
export function priceOf({ rounds, cost_micros }: ReplayEstimate): string {
  const price =
    cost_micros === null ? 'price unknown' : cost_micros === 0 ? 'free' : `about ${roughMoney(cost_micros)}`;
  return `${counted(rounds, 'round')}, ${price}`;
}

/** "Round 2 of 3 is being asked again. $0.04 so far." */
export function standingOf(replay: Replay): string {
  const total = replay.to_round - replay.from_round + 1;
  const done = replay.done_round - replay.from_round + 1;
  const paid = replay.spent_micros ? ` ${money(replay.spent_micros)} so far.` : '';
  if (replay.state === 'running') return `Round ${done + 1} of ${total} is being asked again.${paid}`;
  if (replay.state === 'complete')
    return total === 1 ? 'The round was asked again.' : `All ${total} rounds were asked again.`;
  return `Stopped after ${done} of ${counted(total, 'round')}. ${replay.reason}`;
}

/** Dollars as a person types them, in micro-dollars; null when there is no cap, NaN when it is none. */
export function capOf(text: string): number | null {
  const bare = text.trim().replace(/^\$/, '').replace(',', '.');
  if (bare === '') return null;
  const dollars = Number(bare);
  return Number.isFinite(dollars) && dollars >= 0 ? Math.round(dollars * 1_000_000) : NaN;
}
