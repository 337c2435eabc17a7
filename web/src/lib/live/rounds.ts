/** Messages as rounds. A round whose messages did not change stays the same object, so its view rests. */
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

/** A round is whole when its question is here: of one that was never read, a late reply may be. */
export function isWhole(round: Round): boolean {
  return round.messages.some((message) => message.role === 'user');
}

/** The first and the last of those between two that are not here; null when all are. */
export function missingOf(
  rounds: Round[],
  first: number,
  last: number,
): { first: number; last: number } | null {
  const known = new Set(rounds.filter(isWhole).map((round) => round.number));
  while (first <= last && known.has(first)) first++;
  while (last >= first && known.has(last)) last--;
  return first <= last ? { first, last } : null;
}
