/** How two texts differ, word by word: for each the words that the other has not. */

export interface Piece {
  text: string;
  isOnlyHere: boolean;
}

/** Above so many words the middle is marked whole: people do not read a diff of two essays. */
const WORDS_LIMIT = 600;
/** Two texts that share less than this have nothing to be compared by. */
const LEAST_SHARED = 0.2;

export function diffWords(left: string, right: string): { left: Piece[]; right: Piece[] } {
  const [a, b] = [wordsOf(left), wordsOf(right)];
  const pairs = common(a.map(letters), b.map(letters));
  if (pairs.length < LEAST_SHARED * Math.max(a.length, b.length))
    return { left: [{ text: left, isOnlyHere: false }], right: [{ text: right, isOnlyHere: false }] };
  return {
    left: pieces(a, new Set(pairs.map(([n]) => n))),
    right: pieces(b, new Set(pairs.map(([, n]) => n))),
  };
}

/** Each word with the space after it. */
function wordsOf(text: string): string[] {
  return text.match(/\s*\S+\s*/g) ?? [];
}

function letters(word: string): string {
  return word.trim();
}

/** The longest common subsequence, as pairs of places. */
function common(a: string[], b: string[]): [number, number][] {
  let [start, endA, endB] = [0, a.length, b.length];
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--;
    endB--;
  }
  const before = Array.from({ length: start }, (_, n): [number, number] => [n, n]);
  const after = Array.from({ length: a.length - endA }, (_, n): [number, number] => [endA + n, endB + n]);
  return [...before, ...middle(a.slice(start, endA), b.slice(start, endB), start), ...after];
}

function middle(a: string[], b: string[], offset: number): [number, number][] {
  if (a.length > WORDS_LIMIT || b.length > WORDS_LIMIT) return [];
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i]![j] =
        a[i] === b[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
  const pairs: [number, number][] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) pairs.push([offset + i++, offset + j++]);
    else if (lengths[i + 1]![j]! >= lengths[i]![j + 1]!) i++;
    else j++;
  }
  return pairs;
}

/** Neighbours of one kind become one piece. */
function pieces(words: string[], shared: Set<number>): Piece[] {
  const found: Piece[] = [];
  words.forEach((text, n) => {
    const isOnlyHere = !shared.has(n);
    const last = found.at(-1);
    if (last?.isOnlyHere === isOnlyHere) last.text += text;
    else found.push({ text, isOnlyHere });
  });
  found.forEach((piece, n) => n > 0 && moveSpace(found[n - 1]!, piece));
  return found;
}

/** A mark ends with its last word. */
function moveSpace(before: Piece, piece: Piece): void {
  if (!before.isOnlyHere) return;
  const words = before.text.trimEnd();
  piece.text = before.text.slice(words.length) + piece.text;
  before.text = words;
}
