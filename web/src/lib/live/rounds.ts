/** Groups messages into rounds. A round whose messages did not change stays the same object, so it is not drawn again. */
import type { Message, Round } from '../api/types';

export function roundsOf(messages: Iterable<Message>, before: Round[] = []): Round[] {
  const numbered = new Map<number, Message[]>();
  for (const message of messages) {
    const together = numbered.get(message.round_number);
    if (together) together.push(message);
    else numbered.set(message.round_number, [message]);
  }
  const known = new Map(before.map((round) => [round.number, round]));
  const rounds = [...numbered]
    .sort(([a], [b]) => a - b)
    .map(([number, together]) => sameOrNew(known.get(number), number, together.sort(byAge)));
  return rounds.length === before.length && rounds.every((round, n) => round === before[n]) ? before : rounds;
}

function sameOrNew(before: Round | undefined, number: number, messages: Message[]): Round {
  const isSame =
    before?.messages.length === messages.length && messages.every((each, n) => each === before.messages[n]);
  return isSame && before ? before : { number, messages };
}

/** ULIDs sort by time. */
function byAge(a: Message, b: Message): number {
  return a.id < b.id ? -1 : 1;
}

/** Which rounds were read through a conversation: what a branch of it shows of a round may be one reply alone. */
export class LoadedRounds {
  #from = Infinity;
  #before = new Set<number>();

  /** From its first round on all is here, and the stream keeps it so; up to `last` it was before, if that joins on. */
  snapshot(first: number, isJoined: boolean, last: number): void {
    if (!isJoined) this.#before.clear();
    else for (let number = this.#from; number <= last; number++) this.#before.add(number);
    this.#from = first;
  }

  /** All of them between these two: one that did not come is no more. */
  page(first: number, last: number): void {
    for (let number = first; number <= last; number++) this.#before.add(number);
  }

  has(number: number): boolean {
    return number >= this.#from || this.#before.has(number);
  }

  /** The first and the last of those between two that were not read; null when all were. */
  missing(first: number, last: number): { first: number; last: number } | null {
    while (first <= last && this.has(first)) first++;
    while (last >= first && this.has(last)) last--;
    return first <= last ? { first, last } : null;
  }
}
