/** Fuzzy matching for the palette: every word of the query must begin a word, or at least stand in the text. Accents count as none. */

export interface Piece {
  text: string;
  isHit: boolean;
}

/** 0 when it does not match; more the better. */
export function score(text: string, query: string): number {
  const words = plain(query).split(/\s+/).filter(Boolean);
  const where = plain(text);
  let sum = 1;
  for (const word of words) {
    const at = where.indexOf(word);
    if (at < 0) return 0;
    sum += at === 0 ? 4 : /[\s\p{P}]/u.test(where[at - 1]!) || where.includes(` ${word}`) ? 3 : 1;
  }
  return sum;
}

/** The text cut where the query's words stand in it. */
export function pieces(text: string, query: string): Piece[] {
  const where = plain(text);
  // A letter that is written with two code units when plain would shift everything after it.
  const words = where.length === text.length ? plain(query).split(/\s+/).filter(Boolean) : [];
  const hits = words
    .map((word): [number, number] => [where.indexOf(word), word.length])
    .filter(([at]) => at >= 0)
    .sort(([a], [b]) => a - b);
  const found: Piece[] = [];
  let end = 0;
  for (const [at, length] of hits) {
    if (at < end) continue;
    if (at > end) found.push({ text: text.slice(end, at), isHit: false });
    found.push({ text: text.slice(at, at + length), isHit: true });
    end = at + length;
  }
  if (end < text.length) found.push({ text: text.slice(end), isHit: false });
  return found;
}

function plain(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
}
