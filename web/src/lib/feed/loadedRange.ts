/** Ranges of loaded rounds: a conversation may be loaded at its end and in a part before it. */

type IsRead = (round: number) => boolean;

/** Going back from a round, the first up to which all were read. */
export function firstJoined(isRead: IsRead, from: number): number {
  let at = from;
  while (at > 1 && isRead(at - 1)) at--;
  return at;
}

/** Going on from a round, the last up to which all were read, of so many. */
export function lastJoined(isRead: IsRead, from: number, count: number): number {
  let at = from;
  while (at < count && isRead(at + 1)) at++;
  return at;
}

/** The target of an address: a round, "#round-4", or a reply in it, "#round-4/01J…". */
export interface ScrollTarget {
  round: number;
  replyId: string | null;
}

export function scrollTargetIn(hash: string): ScrollTarget | null {
  const found = /^#round-(\d{1,9})(?:\/(\w+))?$/.exec(hash);
  return found ? { round: Number(found[1]), replyId: found[2] ?? null } : null;
}
