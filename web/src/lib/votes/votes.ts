/** Votes: which reply of a round was best; in a blind round, before the names are known. Pure. */
import type { Message, Round, Turn, Vote, Voice } from '$lib/api/types';
import type { Lane, Version } from '$lib/conversation/lanes';

/**
 * The last word of each person on this round, the newest last. Whoever voted before a branch, and in it on what it made of
 * the round, has said two things.
 */
export function votesOn(round: Round, votes: Record<string, Vote>): Vote[] {
  const here = new Set(round.messages.map((message) => message.id));
  const said = Object.values(votes).filter((vote) =>
    vote.contenders.some((each) => here.has(each.message_id)),
  );
  const ordered = said.sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
  const last = new Map(ordered.map((vote) => [vote.user_id, vote]));
  return ordered.filter((vote) => last.get(vote.user_id) === vote);
}

export function mine(votes: Vote[], userId: string | undefined): Vote | undefined {
  return votes.find((vote) => vote.user_id === userId);
}

/** The reply that counts as the best: the newest mark. */
export function bestOf(votes: Vote[]): string | null {
  return votes.findLast((vote) => vote.verdict === 'best')?.message_id ?? null;
}

/** Whether one does not know yet who said what. */
export function isMasked(asked: Turn | undefined, votes: Vote[], userId: string | undefined): boolean {
  return asked?.is_blind === true && !mine(votes, userId);
}

/** The same lanes under letters, in an order that has nothing to do with the seats. */
export function masked(lanes: Lane[], turnId: string): Lane[] {
  const order = [...lanes].sort((a, b) => mixed(turnId + a.voice.id) - mixed(turnId + b.voice.id));
  const letters = [...new Set(order.map((lane) => lane.voice.id))];
  return order.map((lane) => {
    const place = letters.indexOf(lane.voice.id);
    const hidden = (voice: Voice): Voice => ({
      ...voice,
      name: `Mind ${String.fromCharCode(65 + place)}`,
      seat: place + 1,
      model: ':hidden until you vote',
      persona_id: null,
      persona_version: null,
    });
    return {
      ...lane,
      voice: hidden(lane.voice),
      versions: lane.versions.map((version) => withVoice(version, hidden)),
    };
  });
}

function withVoice(version: Version, hidden: (voice: Voice) => Voice): Version {
  if (version.kind === 'message')
    return {
      ...version,
      message: { ...version.message, voice: hidden(version.message.voice!), usage: null },
    };
  if (version.kind === 'draft')
    return { ...version, draft: { ...version.draft, voice: hidden(version.draft.voice) } };
  return { ...version, turn: { ...version.turn, table: version.turn.table.map(hidden) } };
}

/** FNV-1a: the same letters for the same round, and nothing to be learnt from them. */
function mixed(text: string): number {
  let hash = 0x811c9dc5;
  for (const letter of text) hash = Math.imul(hash ^ letter.codePointAt(0)!, 0x01000193) >>> 0;
  return hash;
}

/** What can be voted on: answers that have text, newest versions. */
export function contenders(lanes: Lane[]): { name: string; seat: number; message: Message }[] {
  return lanes.flatMap((lane) => {
    const version = lane.versions.at(-1);
    return lane.step === 'answer' && version?.kind === 'message' && version.message.content
      ? [{ name: lane.voice.name, seat: lane.voice.seat, message: version.message }]
      : [];
  });
}
