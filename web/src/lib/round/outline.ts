/** The outline of a synthesis, in a form that can be drawn, and the totals of its map. */
import type { Message, Outline, Round, Voice } from '$lib/api/types';
import { voiceOf, type Lane } from '$lib/lanes/lanes';
import { inWords } from '$lib/format/numbers';

/** Returns the replies that hold the outline of this synthesis; a retried one comes last. */
function drawnFor(round: Round, synthesis: Message): Message[] {
  return round.messages.filter(
    ({ step, turn_id, read_replies }) =>
      step === 'outline' &&
      (read_replies.length
        ? read_replies.some((reply) => reply.message_id === synthesis.id)
        : turn_id === synthesis.turn_id),
  );
}

/** The outline made for this synthesis, with its map; else what its own text tells; null when neither can be read. */
export function outlineOf(round: Round, synthesis: Message): Outline | null {
  const made = drawnFor(round, synthesis)
    .filter((message) => message.findings?.outline)
    .at(-1)?.findings?.outline;
  return made ?? synthesis.findings?.outline ?? null;
}

/** The map could not be read: it can be asked for again. */
export function failedOutline(round: Round, synthesis: Message): Message | null {
  const last = drawnFor(round, synthesis).at(-1);
  return last && !last.findings?.outline ? last : null;
}

/** A column of the map. */
export interface Stance {
  voice: Voice;
  /** The synthesis had nothing to read of it; it is not that it says nothing. */
  isAbsent: boolean;
}

/** Lists the stance of every voice that was asked, from the replies the synthesis read. */
export function stancesOf(answers: Lane[], { read_replies }: Message): Stance[] {
  const read = new Map(read_replies.map((reply) => [reply.seat, reply.message_id]));
  return answers.map(({ voice, versions }) => {
    const version = versions.find(({ id }) => id === read.get(voice.seat));
    const isAbsent = read.size ? !read.has(voice.seat) : versions.at(-1)!.state === 'failed';
    return { voice: version ? voiceOf(version) : voice, isAbsent };
  });
}

export interface Agreement {
  topics: number;
  /** Topics on which everyone who was read agrees. */
  shared: number;
  /** Topics on which someone disagrees. */
  disputed: number;
}

/** Counted, not weighed: an absent voice is left out, a silent one has not agreed. */
export function agreementOf({ map }: Outline, standings: Stance[]): Agreement {
  const present = standings.filter((standing) => !standing.isAbsent).map((standing) => standing.voice.seat);
  const stances = map.map((topic) =>
    present.map((seat) => topic.cells.find((cell) => cell.seat === seat)?.stance),
  );
  return {
    topics: map.length,
    shared: stances.filter((some) => some.every((stance) => stance === 'agrees')).length,
    disputed: stances.filter((some) => some.includes('disagrees')).length,
  };
}

/** "Someone disagrees on 1. On the other 3 someone agrees only in part or does not mention it." */
export function restOf({ topics, shared, disputed }: Agreement): string {
  const rest = topics - shared - disputed;
  const where =
    shared + disputed === 0 ? 'On each,' : rest === 1 ? 'On the other one' : `On the other ${rest}`;
  return [
    disputed && `Someone disagrees on ${disputed}.`,
    rest && `${where} someone agrees only in part or does not mention it.`,
  ]
    .filter(Boolean)
    .join(' ');
}

/** "three replies" */
export function repliesIn(standings: Stance[]): string {
  const count = standings.filter((standing) => !standing.isAbsent).length;
  return `${inWords(count).toLowerCase()} ${count === 1 ? 'reply' : 'replies'}`;
}
