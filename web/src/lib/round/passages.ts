/** The passages found for a question by any of its voices, with names for display. */
import type { Passage, Turn } from '$lib/api/types';

/** Once each, in the order in which they were found. */
export function passagesOf(turns: Pick<Turn, 'found'>[]): Passage[] {
  const known = new Map<string, Passage>();
  for (const each of turns.flatMap(({ found }) => found))
    if (!known.has(keyOf(each))) known.set(keyOf(each), each);
  return [...known.values()];
}

/** A question and its replies are one place: their round. */
function keyOf({
  source_type,
  source_id,
  conversation_id,
  round_number,
  start_line,
  end_line,
}: Passage): string {
  const place = source_type === 'file' ? [source_id, start_line, end_line] : [conversation_id, round_number];
  return place.join(':');
}

/** Names the source of a passage; empty for a round of this conversation, which is shown by its place alone. */
export function nameOf(passage: Passage, conversationId: string, title: string | undefined): string {
  if (passage.source_type === 'file') return passage.name.split('/').at(-1) ?? passage.name;
  if (passage.conversation_id === conversationId) return '';
  return title ?? (passage.name || 'New conversation');
}

/** "lines 12–40", "round 3" */
export function placeOf({ start_line, end_line, round_number, source_type }: Passage): string {
  if (source_type !== 'file') return `round ${round_number}`;
  if (start_line === null) return '';
  return start_line === end_line ? `line ${start_line}` : `lines ${start_line}–${end_line}`;
}

export function addressOf(passage: Passage, projectId: string): string {
  const { source_id, conversation_id, round_number, start_line, end_line } = passage;
  if (passage.source_type !== 'file') return `/c/${conversation_id}#round-${round_number}/${source_id}`;
  const query = new URLSearchParams({ file: source_id });
  if (start_line !== null) query.set('line', String(start_line));
  if (end_line !== null) query.set('to', String(end_line));
  return `/p/${projectId}?${query}`;
}
