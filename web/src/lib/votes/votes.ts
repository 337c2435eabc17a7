/** Votes: which reply of a round was best; in a blind round, before the names are known. Pure. */
import type { Message, Round, Vote, Voice } from '$lib/api/types';
import { voiceOf, type Lane } from '$lib/lanes/lanes';

/**
 * The last word of each person on this round, the newest last. Whoever voted before a branch, and in it on what it made of
 * the round, has said two things.
 */
export function votesOn(round: Round, votes: Record<string, Vote>): Vote[] {
  const here = new Set(round.messages.map((message) => message.id));
  const said = Object.values(votes).filter((vote) =>
    vote.contenders.some((contender) => here.has(contender.message_id)),
  );
  const ordered = said.sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
  const last = new Map(ordered.map((vote) => [vote.user_id, vote]));
  return ordered.filter((vote) => last.get(vote.user_id) === vote);
}

/** The reply that counts as the best: the newest mark. */
export function bestOf(votes: Vote[]): string | null {
  return votes.findLast((vote) => vote.verdict === 'best')?.message_id ?? null;
}

/** A table under letters, as the server tells it while the names are hidden; for a round that is on its way there. */
export function veiled(table: Voice[]): Voice[] {
  return table.map((_, n) => {
    const letter = String.fromCharCode(65 + n);
    return {
      id: `mind:${letter}`,
      seat: n + 1,
      name: `Voice ${letter}`,
      model: '',
      persona_id: null,
      persona_version: null,
      letter,
      effort: null,
    };
  });
}

/** Returns a person's vote as a sentence; empty until the names are known. */
export function outcomeOf(vote: Vote | undefined, lanes: Lane[], who: string): string {
  if (vote?.verdict === 'tie') return `${who} voted for a tie.`;
  if (vote?.verdict === 'both_bad') return `${who} chose none of the answers.`;
  if (vote?.verdict !== 'best') return '';
  const chosen = lanes.flatMap(({ versions }) => versions).find(({ id }) => id === vote.message_id);
  const voice = chosen && voiceOf(chosen);
  return voice?.model ? `${who} chose ${voice.name}.` : '';
}

/** Returns the answers that can be voted on: the newest versions, if they have text. */
export function contenders(lanes: Lane[]): { name: string; seat: number; message: Message }[] {
  return lanes.flatMap((lane) => {
    const version = lane.versions.at(-1);
    return lane.step === 'answer' && version?.kind === 'message' && version.message.content
      ? [{ name: lane.voice.name, seat: lane.voice.seat, message: version.message }]
      : [];
  });
}
