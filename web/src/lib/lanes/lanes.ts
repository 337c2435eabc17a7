/**
 * A round as people see it: one lane per voice, each with the versions of its reply and what it is doing now.
 *
 *   queued ─▶ asked ─▶ thinking ─▶ writing ─▶ finished | stopped | interrupted | failed
 *               └▶ waiting ┘                       └──────▶ queued (again, as the next version)
 *
 * Queued: it was not asked yet. Asked: not a word has come. Waiting: its provider asked to be called again later.
 *
 * Made from the round's messages, the turns that answer it, and the drafts being written.
 */
import type { Draft, Message, Round, Step, Turn, Voice } from '$lib/api/types';
import { modeNamed } from '$lib/council/modes';
import type { Seat, SeatState } from '$lib/seats/seats';
import { totalOf, type Total } from '$lib/format/numbers';

export type LaneState =
  'queued' | 'asked' | 'thinking' | 'waiting' | 'writing' | 'finished' | 'stopped' | 'interrupted' | 'failed';

export type Version =
  | {
      kind: 'message';
      id: string;
      message: Message;
      state: 'finished' | 'stopped' | 'interrupted' | 'failed';
    }
  | { kind: 'draft'; id: string; draft: Draft; state: 'asked' | 'thinking' | 'waiting' | 'writing' }
  | {
      kind: 'queued';
      id: string;
      turn: Turn;
      step: Step;
      state: 'queued';
      /** Its turn runs and it waits for nobody: it is asked at this moment. */
      isNext: boolean;
    };

const ORDER: Step[] = ['answer', 'summary', 'rebuttal', 'critique', 'review', 'synthesis', 'outline'];

export interface Lane {
  /** The same from the moment the table is set to the last version, also when a blind round's names are told. */
  key: string;
  /** The voice of the last version: another model may have replaced the first. */
  voice: Voice;
  step: Step;
  /** Oldest first; never empty. */
  versions: Version[];
}

/** An outline is no lane of its own: it is drawn inside the synthesis it is of. */
export function lanesOf(round: Round, turns: Turn[], drafts: Draft[]): Lane[] {
  const mine = turns.filter((turn) => turn.round_number === round.number);
  const chains = chainsOf([
    ...round.messages.filter((message) => message.voice).map(fromMessage),
    ...drafts.filter(isNew).map(fromDraft),
  ]).filter((chain) => stepOf(chain[0]!) !== 'outline');
  for (const turn of mine.filter(isRunning)) addQueued(chains, turn);
  return withKeys(
    chains
      .map((versions) => ({ voice: voiceOf(versions[0]!), step: stepOf(versions[0]!), versions }))
      .sort(byPlace(mine.find((turn) => turn.purpose === 'ask')?.table ?? [])),
  ).map((lane) => ({ ...lane, voice: voiceOf(latest(lane)) }));

  function isNew(draft: Draft): boolean {
    return draft.round_number === round.number && !round.messages.some((message) => message.id === draft.id);
  }
}

function stepOf(version: Version): Step {
  if (version.kind === 'queued') return version.step;
  return version.kind === 'message' ? version.message.step : version.draft.step;
}

export function latest(lane: Lane): Version {
  return lane.versions.at(-1)!;
}

export function stateOf(lane: Lane): LaneState {
  return latest(lane).state;
}

export function isOver(state: LaneState): boolean {
  return state === 'finished' || state === 'stopped' || state === 'interrupted' || state === 'failed';
}

/** The table as it is drawn: everyone once, as they are doing now. */
export function seatsOf(lanes: Lane[]): Seat[] {
  const seats = new Map<number, Seat>();
  for (const lane of lanes)
    if (!seats.has(lane.voice.seat) || !isOver(stateOf(lane)))
      seats.set(lane.voice.seat, { seat: lane.voice.seat, state: SEAT_STATES[stateOf(lane)] });
  return [...seats.values()];
}

const SEAT_STATES: Record<LaneState, SeatState> = {
  queued: 'waiting',
  asked: 'waiting',
  thinking: 'speaking',
  waiting: 'waiting',
  writing: 'speaking',
  finished: 'done',
  stopped: 'done',
  interrupted: 'failed',
  failed: 'failed',
};

/** Returns the cost of all replies of the round, earlier versions included. */
export function costOf(round: Round): Total {
  return totalOf(round.messages.map(({ usage }) => (usage ? usage.cost_micros : 0)));
}

function fromMessage(message: Message): Version {
  const state = message.status === 'complete' ? 'finished' : message.status;
  return { kind: 'message', id: message.id, message, state };
}

function fromDraft(draft: Draft): Version {
  return { kind: 'draft', id: draft.id, draft, state: stateOfDraft(draft) };
}

/** Returns the state of a draft; a continued draft begins with its earlier text, and only later text counts. */
function stateOfDraft({ waiting, number, content }: Draft): 'asked' | 'thinking' | 'waiting' | 'writing' {
  if (waiting) return 'waiting';
  if (number === 0) return 'asked';
  return content === '' ? 'thinking' : 'writing';
}

function chainsOf(versions: Version[]): Version[][] {
  const chains: Version[][] = [];
  for (const version of versions) {
    const earlier = replacedBy(version);
    const chain =
      earlier === null ? undefined : chains.find((chain) => chain.some((known) => known.id === earlier));
    if (chain) chain.push(version);
    else chains.push([version]);
  }
  return chains;
}

function replacedBy(version: Version): string | null {
  if (version.kind === 'message') return version.message.replaces_id;
  return version.kind === 'draft' ? version.draft.replaces_id : null;
}

function isRunning(turn: Turn): boolean {
  return turn.state === 'queued' || turn.state === 'running';
}

/** Adds the voices a running turn still awaits: as new lanes, or behind the reply they will replace. */
function addQueued(chains: Version[][], turn: Turn): void {
  // A reply may be here before the news that its turn runs.
  const hasBegun = chains.some((chain) => chain.some((version) => turnOf(version) === turn.id));
  const isAsking = turn.state === 'running' || hasBegun;
  for (const { voice, step, isNext } of awaited(turn)) {
    const isClosing = step === 'synthesis';
    const isHere = chains.some((chain) =>
      chain.some(
        (version) =>
          turnOf(version) === turn.id &&
          (isClosing ? stepOf(version) === step : voiceOf(version).id === voice.id && !isLate(version)),
      ),
    );
    if (isHere) continue;
    const chain = chains.find((chain) => chain.some((version) => version.id === turn.message_id));
    const queued: Version = {
      kind: 'queued',
      id: `${turn.id}:${voice.id}:${step}`,
      turn: { ...turn, table: [voice] },
      step: chain ? stepOf(chain[0]!) : step,
      state: 'queued',
      isNext: isNext && isAsking,
    };
    if (chain) chain.push(queued);
    else chains.push([queued]);
  }
}

/** The closing is spoken by one who may have answered too. */
function isLate(version: Version): boolean {
  return stepOf(version) === 'synthesis';
}

interface Awaited {
  voice: Voice;
  step: Step;
  isNext: boolean;
}

function awaited(turn: Turn): Awaited[] {
  if (turn.purpose === 'synthesis')
    return turn.table.map((voice) => ({ voice, step: 'synthesis', isNext: true }));
  const { isReviewed, hasChair, isInTurn } = modeNamed(turn.mode);
  const isFirst = turn.purpose === 'ask';
  const table = turn.table.map((voice, n): Awaited => ({
    voice,
    step: isReviewed && isFirst && n > 0 ? 'critique' : 'answer',
    isNext: n === 0 || !isFirst || !(isReviewed || isInTurn),
  }));
  const chair = turn.chair ?? turn.table[0];
  const closing: Awaited[] =
    hasChair && isFirst && chair ? [{ voice: chair, step: 'synthesis', isNext: false }] : [];
  return [...table, ...closing];
}

function turnOf(version: Version): string {
  if (version.kind === 'message') return version.message.turn_id;
  return version.kind === 'draft' ? version.draft.turn_id : version.turn.id;
}

export function voiceOf(version: Version): Voice {
  if (version.kind === 'message') return version.message.voice!;
  return version.kind === 'draft' ? version.draft.voice : version.turn.table[0]!;
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

type Placed = Pick<Lane, 'voice' | 'step'>;

/** As they were invited, in a blind round by their letters before and after the vote, as the composer shows them; whoever is not known to have been, by their seats. */
function byPlace(table: Voice[]): (a: Placed, b: Placed) => number {
  const place = ({ voice }: Placed) => {
    if (voice.letter) return LETTERS.indexOf(voice.letter);
    const at = table.findIndex(({ id }) => id === voice.id);
    return at < 0 ? table.length : at;
  };
  return (a, b) =>
    ORDER.indexOf(a.step) - ORDER.indexOf(b.step) || place(a) - place(b) || a.voice.seat - b.voice.seat;
}

function withKeys(lanes: Omit<Lane, 'key'>[]): Lane[] {
  const seen = new Map<string, number>();
  return lanes.map((lane) => {
    const who = lane.voice.letter ? `mind:${lane.voice.letter}` : lane.voice.id;
    const name = lane.step === 'answer' ? who : `${who}/${lane.step}`;
    const nth = seen.get(name) ?? 0;
    seen.set(name, nth + 1);
    return { ...lane, key: nth === 0 ? name : `${name}#${nth}` };
  });
}
