/** Rounds that follow one another without a gap: a conversation may be known at its end and somewhere before it. */
import { isWhole } from '$lib/live/rounds';
import type { Row } from './rows';

/** Going back from a round, the first that joins on. */
export function firstJoined(rows: Row[], from: number): number {
  return walked(rows, from, -1);
}

/** Going on from a round, the last that joins on. */
export function lastJoined(rows: Row[], from: number): number {
  return walked(rows, from, 1);
}

function walked(rows: Row[], from: number, step: 1 | -1): number {
  const known = new Set(rows.filter(({ round }) => isWhole(round)).map(({ round }) => round.number));
  let at = from;
  while (known.has(at + step)) at += step;
  return at;
}

/** Where an address points to: "#round-4", and perhaps the reply meant, "#round-4/01J…". */
export interface Place {
  round: number;
  replyId: string | null;
}

export function placeIn(hash: string): Place | null {
  const found = /^#round-(\d{1,9})(?:\/(\w+))?$/.exec(hash);
  return found ? { round: Number(found[1]), replyId: found[2] ?? null } : null;
}
