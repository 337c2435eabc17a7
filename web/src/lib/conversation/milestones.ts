/** What a screen reader is told, once each: who begins, who finished and at what length, who failed and why. */
import { latest, stateOf, type Lane, type LaneState } from './lanes';
import { counted, inWords, wordCount } from './numbers';
import { faultOf } from './faults';

export type Standings = Map<string, LaneState>;

export function standingsOf(round: string, lanes: Lane[]): Standings {
  return new Map(lanes.map((lane) => [`${round} ${lane.key} ${lane.versions.length}`, stateOf(lane)]));
}

/** Sentences for what changed. A lane not seen before is part of "…are answering", if it is. */
export function milestones(round: string, lanes: Lane[], before: Standings): string[] {
  const begun = lanes.filter((lane) => isBusy(stateOf(lane)) && !before.has(nameOf(round, lane)));
  const ended = lanes.filter((lane) => {
    const was = before.get(nameOf(round, lane));
    return was !== undefined && isBusy(was) && !isBusy(stateOf(lane));
  });
  return [...(begun.length ? [answering(begun)] : []), ...ended.map(ending)];
}

function nameOf(round: string, lane: Lane): string {
  return `${round} ${lane.key} ${lane.versions.length}`;
}

function isBusy(state: LaneState): boolean {
  return state === 'queued' || state === 'thinking' || state === 'waiting' || state === 'writing';
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
  if (version.state === 'failed') return `${name} failed: ${faultOf(version.message.failure, '').short}`;
  return version.state === 'stopped'
    ? `${name} stopped after ${words}`
    : `${name} was cut off after ${words}`;
}
