/** The text of a round's bar: mode, progress, cost. */
import type { Round, Turn } from '$lib/api/types';
import { modeNamed } from '$lib/council/modes';
import { visibilityNamed } from '$lib/council/visibilities';
import { costOf, isOver, latest, stateOf, type Lane } from '$lib/lanes/lanes';
import { counted, duration, totalMoney } from '$lib/format/numbers';
import { stateWords } from '$lib/lanes/replies';

/** "Parallel · everyone sees all". A round whose turn is not known says only what its replies tell. */
export function settingOf(lanes: Lane[], turn: Turn | undefined): string {
  if (!turn) return modeNamed(lanes.length > 1 ? 'parallel' : 'quick').name;
  const mode = modeNamed(turn.mode);
  return mode.isShared ? `${mode.name} · ${visibilityNamed(turn.visibility).name.toLowerCase()}` : mode.name;
}

/**
 * "2 of 3 finished · $0.0722 so far", then "4 advisors + summary · $0.0722 · 12.0 s"; where not all of them have,
 * "4 of 5 finished, Falcon failed · $0.0722 · 12.0 s".
 */
export function progressOf(round: Round, lanes: Lane[], turn: Turn | undefined): string {
  const cost = costOf(round);
  const isRunning = lanes.some((lane) => !isOver(stateOf(lane)));
  const paid = lanes.some(hasUsage) || cost.micros ? totalMoney(cost) : '';
  const shown = paid && isRunning && cost.micros ? `${paid} so far` : paid;
  return [howFar(lanes) || whoOf(lanes), shown, isRunning ? '' : tookOf(turn)].filter(Boolean).join(' · ');
}

function howFar(lanes: Lane[]): string {
  const finished = lanes.filter((lane) => stateOf(lane) === 'finished').length;
  if (finished === lanes.length) return '';
  if (lanes.every((lane) => stateOf(lane) === 'queued')) return 'waiting';
  const counts = lanes.length > 1 ? [`${finished} of ${lanes.length} finished`] : [];
  return [...counts, ...endings(lanes)].join(', ');
}

const NAMED = 3;

/** Names the voices that did not finish and how they ended: "Falcon and Sage failed". */
function endings(lanes: Lane[]): string[] {
  const names = new Map<string, string[]>();
  for (const lane of lanes) {
    const state = stateOf(lane);
    if (!isOver(state) || state === 'finished') continue;
    const words = stateWords(latest(lane));
    names.set(words, [...(names.get(words) ?? []), nameIn(lane)]);
  }
  return [...names].map(([words, who]) => `${listed(who)} ${words}`);
}

/** The chair is known by what it was to write. */
function nameIn({ step, voice }: Lane): string {
  return step === 'synthesis' ? 'the summary' : voice.name;
}

function listed(names: string[]): string {
  if (names.length > NAMED) return String(names.length);
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** Counts the advisors when the round has a synthesis: "3 advisors + summary"; else empty. */
function whoOf(lanes: Lane[]): string {
  if (!lanes.some((lane) => lane.step === 'synthesis')) return '';
  const answers = lanes.filter((lane) => lane.step === 'answer').length;
  return `${counted(answers, 'advisor')} + summary`;
}

function tookOf(turn: Turn | undefined): string {
  return turn?.finished_at == null ? '' : duration(turn.finished_at - turn.created_at);
}

function hasUsage(lane: Lane): boolean {
  return lane.versions.some((version) => version.kind === 'message' && version.message.usage !== null);
}
