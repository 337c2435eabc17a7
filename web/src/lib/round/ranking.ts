/**
 * How nameless answers were ranked, as a table: a row for each answer, a column for each reviewer.
 *
 * Places count as the server counts them (core/rankings.py): over the rankings that hold the version that stands now,
 * and those who tie share the places they take up.
 */
import type { Ranking, Voice } from '$lib/api/types';
import { isOver, latest, voiceOf, type Lane, type Version } from '$lib/lanes/lanes';
import { listed } from '$lib/format/numbers';

export type Rank =
  { kind: 'place'; place: number; isTied: boolean; isEarlier: boolean } | { kind: 'own' } | { kind: 'none' };

export interface Row {
  voice: Voice;
  /** The ranks of this answer, a single rank for each reviewer. */
  marks: Rank[];
  /** The mean rank; null when no ranking holds this version of the answer. */
  mean: number | null;
  /** The place among all answers by mean rank; answers with the same mean share a place. */
  place: number | null;
  isTied: boolean;
  /** The number of rankings that hold this answer. */
  rankings: number;
}

export interface RankingTable {
  reviewers: Voice[];
  rows: Row[];
  /** Sentences that say what the table lacks, and why. */
  notes: string[];
}

/** Null while there is nothing to show: no ranking was asked for, or none has come yet. */
export function rankingTableOf(lanes: Lane[]): RankingTable | null {
  const answers = lanes.filter((lane) => lane.step === 'answer');
  const reviews = lanes.filter((lane) => lane.step === 'review');
  const rankings = reviews.map((lane) => rankingOf(latest(lane)));
  if (!reviews.some((lane) => readBy(latest(lane)) > 1)) return null;
  const candidates = answers.filter((lane) => heardIn(lane) !== null);
  const rows = candidates.map((lane) => rowOf(lane, reviews, rankings));
  for (const row of rows) {
    if (row.mean === null) continue;
    row.place = 1 + rows.filter((other) => other.mean !== null && isLess(other.mean, row.mean!)).length;
    row.isTied = rows.some((other) => other !== row && other.mean !== null && isSame(other.mean, row.mean!));
  }
  return {
    reviewers: reviews.map((lane) => lane.voice),
    rows: rows.toSorted((a, b) => (a.mean ?? Infinity) - (b.mean ?? Infinity) || 0),
    notes: notesOn(answers, reviews, rankings, rows),
  };
}

function rowOf(lane: Lane, reviews: Lane[], rankings: (Ranking | null)[]): Row {
  const now = heardIn(lane)!;
  const means = rankings.flatMap((ranking) => (ranking ? sharedPlace(ranking, now.id) : []));
  return {
    voice: voiceOf(now),
    marks: reviews.map((review, n) => markOf(lane, now, review, rankings[n] ?? null)),
    mean: means.length ? means.reduce((sum, place) => sum + place, 0) / means.length : null,
    place: null,
    isTied: false,
    rankings: means.length,
  };
}

function markOf(lane: Lane, now: Version, review: Lane, ranking: Ranking | null): Rank {
  if (review.voice.seat === lane.voice.seat) return { kind: 'own' };
  const ranked = lane.versions.findLast((version) => ranking?.message_ids.includes(version.id));
  if (!ranking || !ranked) return { kind: 'none' };
  const places = placesIn(ranking);
  const place = places[ranking.message_ids.indexOf(ranked.id)]!;
  const isTied = places.filter((each) => each === place).length > 1;
  return { kind: 'place', place, isTied, isEarlier: ranked.id !== now.id };
}

function sharedPlace(ranking: Ranking, id: string): number[] {
  const at = ranking.message_ids.indexOf(id);
  if (at < 0) return [];
  const places = placesIn(ranking);
  return [places[at]! + (places.filter((place) => place === places[at]).length - 1) / 2];
}

function placesIn({ places, message_ids }: Ranking): number[] {
  return places.length ? places : message_ids.map((_, n) => n + 1);
}

function isSame(a: number, b: number): boolean {
  return Math.abs(a - b) < 1e-9;
}

function isLess(a: number, b: number): boolean {
  return a < b && !isSame(a, b);
}

/** Returns the ranking of a finished review; null for any other version, whose text may be cut off. */
function rankingOf(version: Version): Ranking | null {
  return version.kind === 'message' && version.state === 'finished'
    ? (version.message.findings?.ranking ?? null)
    : null;
}

function readBy(version: Version): number {
  if (version.kind === 'queued') return 0;
  return (version.kind === 'message' ? version.message : version.draft).read_replies.length;
}

function heardIn(lane: Lane): Version | null {
  return (
    lane.versions.findLast(
      (version) =>
        version.kind === 'message' && version.state !== 'failed' && version.message.content.trim() !== '',
    ) ?? null
  );
}

function notesOn(answers: Lane[], reviews: Lane[], rankings: (Ranking | null)[], rows: Row[]): string[] {
  const states = reviews.map((lane, n) => ({
    name: lane.voice.name,
    version: latest(lane),
    ranking: rankings[n],
  }));
  const named = (isIt: (state: (typeof states)[number]) => boolean) =>
    listed(states.filter(isIt).map(({ name }) => name));
  const writing = named(({ version }) => !isOver(version.state));
  const unreadable = named(
    ({ version, ranking }) => version.state === 'finished' && !ranking && readBy(version) > 1,
  );
  const failed = named(({ version }) => version.state === 'failed');
  const cut = named(({ version }) => version.state === 'stopped' || version.state === 'interrupted');
  const silent = listed(answers.filter((lane) => heardIn(lane) === null).map((lane) => lane.voice.name));
  const late = listed(
    rows.filter((row) => row.mean === null && rankings.some(Boolean)).map((row) => row.voice.name),
  );
  return [
    writing && `Still reviewing: ${writing}.`,
    unreadable && `No order could be read in the review by ${unreadable}.`,
    failed && `No review came from ${failed}.`,
    cut && `Not finished, so not counted: the review by ${cut}.`,
    silent && `Not ranked, because no answer came: ${silent}.`,
    late && `Not ranked in this version: ${late}.`,
  ].filter((note) => note !== '');
}
