/** The rounds of a conversation, with unsent questions at the end. Each row has a name that never changes. */
import type { Message, Round, Turn } from '$lib/api/types';
import { veiled } from '$lib/votes/votes';
import type { Outgoing } from '$lib/composer/outbox';

export interface Row {
  /** The id of the turn that opened the round, known before anyone else knows of it. */
  name: string;
  round: Round;
  turns: Turn[];
  pending?: Outgoing;
}

const NONE: Turn[] = [];

export function rowsOf(rounds: Round[], turns: Turn[], going: Outgoing[]): Row[] {
  const byRound = grouped(turns);
  const rows: Row[] = rounds.map((round) => ({
    name: round.messages.find((message) => message.role === 'user')?.turn_id ?? `round-${round.number}`,
    round,
    turns: byRound.get(round.number) ?? NONE,
  }));
  const known = new Set(rows.map((row) => row.name));
  for (const item of going) {
    if (!known.has(item.id)) rows.push(rowOf(item, (rows.at(-1)?.round.number ?? 0) + 1));
  }
  return rows;
}

/** Groups items by round number. */
export function grouped<T extends { round_number: number }>(items: T[]): Map<number, T[]> {
  const groups = new Map<number, T[]>();
  for (const item of items) {
    const group = groups.get(item.round_number);
    if (group) group.push(item);
    else groups.set(item.round_number, [item]);
  }
  return groups;
}

function rowOf(item: Outgoing, number: number): Row {
  return {
    name: item.id,
    round: { number, messages: [questionOf(item, number)] },
    turns: [turnOf(item, number)],
    pending: item,
  };
}

function questionOf(item: Outgoing, number: number): Message {
  return {
    id: `question-${item.id}`,
    conversation_id: item.conversation_id,
    round_number: number,
    turn_id: item.id,
    speaker: 'user',
    role: 'user',
    content: item.text,
    status: 'complete',
    created_by: item.created_by,
    created_at: item.created_at,
    voice: null,
    thinking: null,
    usage: null,
    failure: null,
    reply_to_id: item.reply_to_id,
    critique_of_id: null,
    replaces_id: null,
    step: 'answer',
    findings: null,
    quotes: item.quotes,
    brings_id: null,
    attachments: item.attachments,
    read_replies: [],
  };
}

function turnOf(item: Outgoing, number: number): Turn {
  return {
    id: item.id,
    conversation_id: item.conversation_id,
    round_number: number,
    purpose: 'ask',
    mode: item.mode,
    table: item.is_blind ? veiled(item.table) : item.table,
    visibility: item.visibility,
    state: 'queued',
    created_by: item.created_by,
    created_at: item.created_at,
    finished_at: null,
    message_id: null,
    chair: item.chair,
    brief: item.brief,
    is_blind: item.is_blind,
    style: 'again',
    scope: item.scope,
    found: [],
  };
}
