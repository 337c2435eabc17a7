/** Data for tests: a voice, a turn, a message, a draft, as the server sends them. */
import type { Draft, Message, Round, Turn, Usage, Voice } from '$lib/api/types';

export function voice(seat: number, name: string = `Mind ${seat}`): Voice {
  return {
    id: `house:${name}:0`,
    seat,
    name,
    model: `house:${name}`,
    persona_id: null,
    persona_version: null,
    letter: '',
    effort: null,
  };
}

export function usage(change: Partial<Usage> = {}): Usage {
  return {
    input_tokens: 100,
    cached_tokens: 0,
    output_tokens: 50,
    reasoning_tokens: 0,
    cost_micros: 1_000,
    latency_ms: 2_000,
    first_token_ms: 200,
    ...change,
  };
}

export function question(change: Partial<Message> = {}): Message {
  return {
    id: 'q1',
    conversation_id: 'c1',
    round_number: 1,
    turn_id: 't1',
    speaker: 'user',
    role: 'user',
    content: 'Why?',
    status: 'complete',
    created_by: 'u1',
    created_at: 0,
    voice: null,
    thinking: null,
    usage: null,
    failure: null,
    reply_to_id: null,
    critique_of_id: null,
    replaces_id: null,
    step: 'answer',
    findings: null,
    quotes: [],
    brings_id: null,
    attachments: [],
    read_replies: [],
    ...change,
  };
}

export function reply(id: string, by: Voice, change: Partial<Message> = {}): Message {
  return question({
    id,
    role: 'advisor',
    speaker: `agent:${by.name}`,
    voice: by,
    content: 'Because.',
    usage: usage(),
    ...change,
  });
}

export function turn(table: Voice[], change: Partial<Turn> = {}): Turn {
  return {
    id: 't1',
    conversation_id: 'c1',
    round_number: 1,
    purpose: 'ask',
    mode: 'parallel',
    table,
    visibility: 'open',
    state: 'running',
    created_by: 'u1',
    created_at: 0,
    finished_at: null,
    message_id: null,
    chair: null,
    brief: '',
    is_blind: false,
    style: 'again',
    scope: null,
    found: [],
    ...change,
  };
}

export function draft(id: string, by: Voice, change: Partial<Draft> = {}): Draft {
  return {
    id,
    turn_id: 't1',
    conversation_id: 'c1',
    round_number: 1,
    voice: by,
    role: 'advisor',
    content: '',
    thinking: '',
    number: 0,
    started_at: 0,
    replaces_id: null,
    waiting: null,
    step: 'answer',
    read_replies: [],
    ...change,
  };
}

export function round(...messages: Message[]): Round {
  return { number: 1, messages: [question(), ...messages] };
}
