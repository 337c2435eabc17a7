/** The word diff of two texts: for each text, the words the other does not have. */
import { diffArrays } from 'diff';

export interface Piece {
  text: string;
  isOnlyHere: boolean;
}

/** Texts that differ in more words than this are not marked: nobody reads such a diff, and finding it takes long. */
const EDITS_LIMIT = 800;
/** Texts that share a smaller part than this are not marked: they have nothing to be compared by. */
const LEAST_SHARED = 0.2;

export function diffWords(left: string, right: string): { left: Piece[]; right: Piece[] } {
  const [a, b] = [wordsOf(left), wordsOf(right)];
  const changes = diffArrays(a, b, { comparator: isSameWord, maxEditLength: EDITS_LIMIT });
  const shared = changes?.filter(isShared).reduce((sum, { count }) => sum + count, 0) ?? 0;
  if (!changes || shared < LEAST_SHARED * Math.max(a.length, b.length))
    return { left: [{ text: left, isOnlyHere: false }], right: [{ text: right, isOnlyHere: false }] };
  return {
    left: pieces(
      a,
      changes.filter(({ added }) => !added),
    ),
    right: pieces(
      b,
      changes.filter(({ removed }) => !removed),
    ),
  };
}

type Change = Pick<ReturnType<typeof diffArrays<string>>[number], 'added' | 'removed' | 'count'>;

function isShared({ added, removed }: Change): boolean {
  return !added && !removed;
}

/** Each word with the space around it. */
function wordsOf(text: string): string[] {
  return text.match(/\s*\S+\s*/g) ?? [];
}

function isSameWord(a: string, b: string): boolean {
  return a.trim() === b.trim();
}

/** The words of one text, cut where shared words and others meet. */
function pieces(words: string[], changes: Change[]): Piece[] {
  let at = 0;
  const found = changes.map((change) => ({
    text: words.slice(at, (at += change.count)).join(''),
    isOnlyHere: !isShared(change),
  }));
  const joined = found.filter(({ text }) => text !== '');
  joined.forEach((piece, n) => n > 0 && moveSpace(joined[n - 1]!, piece));
  return joined;
}

/** A mark ends with its last word. */
function moveSpace(before: Piece, piece: Piece): void {
  if (!before.isOnlyHere) return;
  const words = before.text.trimEnd();
  piece.text = before.text.slice(words.length) + piece.text;
  before.text = words;
}
