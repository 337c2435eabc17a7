/** What was found, cut where it matches. */
import type { Hit, Span } from '$lib/api/types';

export interface Piece {
  text: string;
  isHit: boolean;
}

/** The server counts characters, not the units they are kept in. */
export function snippetPieces(snippet: string, highlights: Span[]): Piece[] {
  const letters = [...snippet];
  const pieces: Piece[] = [];
  let end = 0;
  for (const span of highlights.toSorted((a, b) => a.start - b.start)) {
    if (span.start < end) continue;
    if (span.start > end) pieces.push({ text: letters.slice(end, span.start).join(''), isHit: false });
    pieces.push({ text: letters.slice(span.start, span.end).join(''), isHit: true });
    end = span.end;
  }
  if (end < letters.length) pieces.push({ text: letters.slice(end).join(''), isHit: false });
  return pieces;
}

/** ":45-67", "Round 4" */
export function placeOf({ location }: Hit): string {
  const { start_line, end_line, round_number } = location;
  if (start_line !== null)
    return start_line === end_line ? `line ${start_line}` : `lines ${start_line}–${end_line}`;
  return round_number === null ? '' : `round ${round_number}`;
}

/** Where one reads on: the file at its lines, or the conversation at its round. */
export function addressOf(hit: Hit): string {
  const { conversation_id, round_number, start_line, end_line } = hit.location;
  if (hit.source_type !== 'file') return `/c/${conversation_id}#round-${round_number}`;
  const query = new URLSearchParams({ file: hit.source_id, line: String(start_line), to: String(end_line) });
  return `/p/${hit.project_id}?${query}`;
}
