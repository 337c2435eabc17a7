/**
 * What a synthesis was written from, beside what stands in its round now.
 *
 * The count is of what the model was shown (`read_replies`), never of the round: a reply that came later, or is being
 * written at this moment, was not read.
 */
import type { Draft, Message, Voice } from '$lib/api/types';
import { isOver, latest, voiceOf, type Lane, type Version } from '$lib/lanes/lanes';
import { inWords, listed } from '$lib/format/numbers';

export interface Coverage {
  /** The number of voices whose reply the synthesis read. */
  read: number;
  /** The number of voices that were asked. */
  asked: number;
  /** Voices with a reply of which the synthesis read no version. */
  unread: Voice[];
  /** Voices whose reply the synthesis read in an earlier version. */
  changed: Voice[];
  /** Voices that are answering again now. */
  running: Voice[];
}

const STEPS = ['answer', 'rebuttal', 'critique'];

/** Null when it is not known what it read: nothing was written, or before this was kept. */
export function coverageOf(synthesis: Message | Draft, lanes: Lane[]): Coverage | null {
  const ids = new Set(synthesis.read_replies.map((reply) => reply.message_id));
  const seats = new Set(synthesis.read_replies.map((reply) => reply.seat));
  if (!ids.size || ('status' in synthesis && !synthesis.content.trim())) return null;
  const advisors = lanes.filter((lane) => STEPS.includes(lane.step));
  const answered = advisors.map((lane) => ({ lane, heard: lane.versions.findLast(isHeard) }));
  const news = answered.filter(({ heard }) => heard && !ids.has(heard.id));
  const [changed, unread] = parted(news, ({ lane }) => seats.has(lane.voice.seat));
  return {
    read: seats.size,
    asked: new Set([...seats, ...advisors.map((lane) => lane.voice.seat)]).size,
    unread: voicesOf(unread.map(({ heard }) => heard!)),
    changed: voicesOf(changed.map(({ heard }) => heard!)),
    running: voicesOf(advisors.map(latest).filter((version) => !isOver(version.state))),
  };
}

/** A reply that broke off still said something. */
function isHeard(version: Version): boolean {
  return version.kind === 'message' && version.state !== 'failed' && version.message.content.trim() !== '';
}

function parted<T>(items: T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

function voicesOf(versions: Version[]): Voice[] {
  return [...new Map(versions.map((version) => [voiceOf(version).seat, voiceOf(version)])).values()];
}

/** How much of an advisor's reply the synthesis includes: the latest version, an earlier version, or nothing. */
export type Included = 'whole' | 'earlier' | 'not';

export function includedIn(synthesis: Message | Draft, lane: Lane): Included {
  const ids = new Set(synthesis.read_replies.map((reply) => reply.message_id));
  const heard = lane.versions.findLast(isHeard);
  if (heard && ids.has(heard.id)) return 'whole';
  return lane.versions.some((version) => ids.has(version.id)) ? 'earlier' : 'not';
}

/** "having read all four", "having read three of four, one in an earlier version"; "reading both" while it writes. */
export function readSentence({ read, asked, changed }: Coverage, isWriting: boolean): string {
  const verb = isWriting ? 'reading' : 'having read';
  const all = asked === 2 ? 'both' : `all ${lower(asked)}`;
  const earlier = changed.length ? `, ${lower(changed.length)} in an earlier version` : '';
  return `${verb} ${asked === 1 ? 'one reply' : read === asked ? all : `${lower(read)} of ${lower(asked)}`}${earlier}`;
}

/** Tells which replies came after the synthesis; empty when it read the latest of all. */
export function newsSentences({ unread, changed, running }: Coverage): string[] {
  return [
    unread.length && `${namesOf(unread)} answered after this was written.`,
    changed.length && `${namesOf(changed)} ${changed.length === 1 ? 'has' : 'have'} a newer reply.`,
    running.length && `${namesOf(running)} ${running.length === 1 ? 'is' : 'are'} answering again.`,
  ].filter((sentence) => sentence !== 0);
}

export function namesOf(voices: Voice[]): string {
  return listed(voices.map((voice) => voice.name));
}

function lower(count: number): string {
  return inWords(count).toLowerCase();
}
