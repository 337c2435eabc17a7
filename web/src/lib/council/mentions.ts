/** `@name` in the message field: which voice is meant, where it stands, and the name being typed. */
import type { Voice } from '$lib/api/types';

export interface Mention<T> {
  who: T;
  /** With its @. */
  start: number;
  end: number;
}

type Named = Pick<Voice, 'name'>;

/** "The Sage" is @sage, as the server has it. */
export function handleOf(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replace(/^the\s+/, '')
    .replaceAll(/[^\p{L}\p{N}_]+/gu, '-')
    .replace(/^-+|-+$/g, '');
}

/** Finds the voices mentioned in a text, in order; the longest matching name counts. */
export function mentionsIn<T extends Named>(text: string, known: T[]): Mention<T>[] {
  const found: Mention<T>[] = [];
  for (const match of text.matchAll(/(?<![\p{L}\p{N}_.@])@/gu)) {
    const mention = mentionAt(text, match.index, known);
    if (mention) found.push(mention);
  }
  return found;
}

/** Each of those named once. */
export function addressed<T extends Named>(text: string, known: T[]): T[] {
  return [...new Set(mentionsIn(text, known).map((each) => each.who))];
}

function mentionAt<T extends Named>(text: string, start: number, known: T[]): Mention<T> | null {
  const rest = text.slice(start + 1).toLowerCase();
  let best: Mention<T> | null = null;
  for (const who of known)
    for (const name of [who.name.toLowerCase(), handleOf(who.name)]) {
      const end = start + 1 + name.length;
      const isWhole =
        name !== '' && rest.startsWith(name) && !/^[\p{L}\p{N}_]/u.test(rest.slice(name.length));
      if (isWhole && end > (best?.end ?? 0)) best = { who, start, end };
    }
  return best;
}

/** Returns the text between an @ and the caret, if a person types a name there. */
export function openMentionAt(text: string, caret: number): { start: number; typed: string } | null {
  const match = /(?:^|[^\p{L}\p{N}_.@])@([\p{L}\p{N}_ .-]{0,30})$/u.exec(text.slice(0, caret));
  return match ? { start: caret - match[1]!.length - 1, typed: match[1]! } : null;
}

/** Returns the voices whose name continues the typed text; none once a name is complete. */
export function namesFor<T extends Named>(typed: string, known: T[]): T[] {
  const lower = typed.toLowerCase();
  const fits = ({ name }: T) =>
    name.toLowerCase().startsWith(lower) ||
    handleOf(name).startsWith(lower) ||
    name
      .toLowerCase()
      .split(' ')
      .some((word) => word.startsWith(lower));
  return known.filter(fits);
}

/** The text with words put where they were being typed, and where the caret stands then. */
export function put(
  text: string,
  start: number,
  caret: number,
  words: string,
): { text: string; caret: number } {
  const after = text.slice(caret);
  const whole = `${words}${/^\s/.test(after) ? '' : ' '}`;
  return {
    text: text.slice(0, start) + whole + after,
    caret: start + whole.length + (/^\s/.test(after) ? 1 : 0),
  };
}
