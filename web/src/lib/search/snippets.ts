/** Snippets: the text of a hit, cut where the query matches. */
import type { Hit, Span } from '$lib/api/types';
import { MATCHES } from '$lib/format/reasons';
import { plainCut } from '$lib/markdown/plainText';

export interface Piece {
  text: string;
  isHit: boolean;
}

/** The server counts characters, not the units they are kept in. Words that stand together are one mark. */
export function snippetPieces(snippet: string, highlights: Span[]): Piece[] {
  const letters = [...snippet];
  const pieces: Piece[] = [];
  let end = 0;
  for (const span of highlights.toSorted((a, b) => a.start - b.start)) {
    if (span.start < end) continue;
    const between = letters.slice(end, span.start).join('');
    const found = letters.slice(span.start, span.end).join('');
    const before = pieces.at(-1);
    if (before && /^[ \t]+$/.test(between)) before.text += between + found;
    else {
      if (between) pieces.push({ text: between, isHit: false });
      pieces.push({ text: found, isHit: true });
    }
    end = span.end;
  }
  if (end < letters.length) pieces.push({ text: letters.slice(end).join(''), isHit: false });
  return pieces;
}

/** Splits a hit's snippet into pieces: Markdown becomes plain words, text of other files stays as it is. */
export function readPieces({ source_type, title, snippet, highlights }: ReadHit): Piece[] {
  const isSource = source_type === 'file' && !MARKDOWN.test(title);
  return (isSource ? snippetPieces : plainPieces)(snippet, highlights);
}

type ReadHit = Pick<Hit, 'source_type' | 'title' | 'snippet' | 'highlights'>;

const MARKDOWN = /\.(md|markdown)$/i;

/** Splits a Markdown snippet into pieces of plain words, without its Markdown marks. */
export function plainPieces(snippet: string, highlights: Span[]): Piece[] {
  const marked = snippetPieces(snippet, highlights)
    .map(({ text, isHit }) => (isHit ? BEGIN + bare(text) + END : bare(text)))
    .join('');
  return plainCut(marked)
    .split(/(?=\uE000)|\uE001/)
    .map((text) => ({ text: bare(text), isHit: text.startsWith(BEGIN) }))
    .filter(({ text }) => text !== '');
}

/** Stand around what matched while the text is read as a whole; no letters of any script. */
const BEGIN = '\uE000';
const END = '\uE001';

const bare = (text: string): string => text.replace(/[\uE000\uE001]/g, '');

export interface SnippetLine {
  /** Null where the file's lines are not known. */
  number: number | null;
  pieces: Piece[];
}

/** The snippet of a file line by line, each with its number; a few, from just before the first that matches. */
export function snippetLines(hit: Hit, most = 5): SnippetLine[] {
  const lines = allLines(hit);
  const first = lines.findIndex(({ pieces }) => pieces.some((piece) => piece.isHit));
  const start = Math.max(0, Math.min(first - 1, lines.length - most));
  return lines.slice(start, start + most);
}

function allLines({ snippet, highlights, content, location }: Hit): SnippetLine[] {
  const before = content.slice(0, Math.max(0, content.indexOf(snippet)));
  const first = location.start_line && location.start_line + before.split('\n').length - 1;
  const lines: Piece[][] = [[]];
  for (const { text, isHit } of snippetPieces(snippet, highlights)) {
    text.split('\n').forEach((part, n) => {
      if (n > 0) lines.push([]);
      if (part) lines.at(-1)!.push({ text: part, isHit });
    });
  }
  const numbered = lines.map((pieces, n) => ({ number: first && first + n, pieces }));
  return numbered.filter(({ pieces }, n) => pieces.length || (n > 0 && n < numbered.length - 1));
}

/** Returns a single line around the first match, for places with little room. */
export function excerpt(hit: ReadHit, before = 24): Piece[] {
  const pieces = readPieces(hit).map(({ text, isHit }) => ({
    text: text.replace(/\s+/g, ' '),
    isHit,
  }));
  const first = pieces.findIndex((piece) => piece.isHit);
  const lead = pieces
    .slice(0, Math.max(first, 0))
    .map(({ text }) => text)
    .join('');
  if (lead.length <= before) return pieces;
  return [{ text: `…${endOf(lead, before)}`, isHit: false }, ...pieces.slice(first)];
}

/** Returns the last characters of a text, from the start of a word. */
function endOf(text: string, most: number): string {
  const end = [...text].slice(-most).join('');
  return end.slice(end.indexOf(' ') + 1);
}

/** "strong match · 3 of 4 words, close in meaning" */
export function matchWords({ match, why }: Pick<Hit, 'match' | 'why'>): string {
  return [matchName({ match }), why].filter(Boolean).join(' · ');
}

export function matchName({ match }: Pick<Hit, 'match'>): string {
  return MATCHES[match];
}

/** "lines 45–67", "round 4" */
export function placeOf({ location }: Hit): string {
  const { start_line, end_line, round_number } = location;
  if (start_line !== null)
    return start_line === end_line ? `line ${start_line}` : `lines ${start_line}–${end_line}`;
  return round_number === null ? '' : `round ${round_number}`;
}

const PROSE = /\.(md|markdown|txt|rst|pdf|docx?|odt|epub|html?|pptx?|csv|tsv|xlsx?)$/i;

/** Set in letters of one width. */
export function isCode({ source_type, title }: Pick<Hit, 'source_type' | 'title'>): boolean {
  return source_type === 'file' && title.includes('.') && !PROSE.test(title);
}

/** Returns the address of a hit: the file at its lines, or the conversation at its round. */
export function addressOf(hit: Hit): string {
  const { conversation_id, round_number, start_line, end_line } = hit.location;
  if (hit.source_type !== 'file') return `/c/${conversation_id}#round-${round_number}/${hit.source_id}`;
  const query = new URLSearchParams({ file: hit.source_id, line: String(start_line), to: String(end_line) });
  return `/p/${hit.project_id}?${query}`;
}
