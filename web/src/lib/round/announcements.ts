/** Announcements for screen readers, once each: who starts, who finished and at what length, who failed and why. */
import { isOver, latest, type Lane, type Version } from '$lib/lanes/lanes';
import { counted, inWords, wordCount } from '$lib/format/numbers';
import { failureText } from '$lib/lanes/replyErrors';
import { stateWords } from '$lib/lanes/replies';

/** The state of a lane; a lane that waits for others is not answering yet. */
type Standing = 'waiting' | 'answering' | 'over';

export type LaneStates = Map<string, Standing>;

export function laneStates(round: string, lanes: Lane[]): LaneStates {
  return new Map(lanes.map((lane) => [nameOf(round, lane), standingOf(latest(lane))]));
}

/** Sentences for what changed. Who answers now and did not before is part of "…are answering". */
export function announcementsFor(round: string, lanes: Lane[], before: LaneStates): string[] {
  const now = laneStates(round, lanes);
  const was = (lane: Lane) => before.get(nameOf(round, lane));
  const is = (lane: Lane) => now.get(nameOf(round, lane));
  const begun = lanes.filter((lane) => is(lane) === 'answering' && was(lane) !== 'answering');
  const ended = lanes.filter((lane) => is(lane) === 'over' && ['waiting', 'answering'].includes(was(lane)!));
  return [...(begun.length ? [answering(begun)] : []), ...ended.map(ending)];
}

function nameOf(round: string, lane: Lane): string {
  return `${round} ${lane.key} ${lane.versions.length}`;
}

function standingOf(version: Version): Standing {
  if (isOver(version.state)) return 'over';
  return version.kind === 'queued' && !version.isNext ? 'waiting' : 'answering';
}

function answering(lanes: Lane[]): string {
  return lanes.length === 1
    ? `${lanes[0]!.voice.name} is answering`
    : `${inWords(lanes.length)} voices are answering`;
}

function ending(lane: Lane): string {
  const version = latest(lane);
  const { name } = lane.voice;
  if (version.kind !== 'message') return `${name} stopped`;
  const words = counted(wordCount(version.message.content), 'word');
  if (version.state === 'finished') return `${name} finished, ${words}`;
  if (version.state === 'failed') {
    const { isCalm, short } = failureText(version.message.failure, '');
    return isCalm ? `${name} ${stateWords(version)}` : `${name} failed: ${short}`;
  }
  return version.state === 'stopped'
    ? `${name} stopped after ${words}`
    : `${name} was cut off after ${words}`;
}
