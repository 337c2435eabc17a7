/** Requests about branches. Results come by the stream. */
import { request } from '$lib/api/client';
import { ulid } from '$lib/api/ulid';
import type {
  Comparison,
  Conversation,
  Message,
  MessageDeletionPreview,
  NewEdit,
  OlderRounds,
  OpenedTurn,
  Tree,
  VoiceRef,
} from '$lib/api/types';

export type Style = 'again' | 'concise' | 'detailed';

export interface How {
  style?: Style;
  model?: string;
  /** Sources of its receipt that it is not to be shown this time. */
  without?: string[];
}

export function readTree(id: string): Promise<Tree> {
  return request('GET', `/api/conversations/${id}/tree`);
}

export function compare(left: string, right: string): Promise<Comparison> {
  return request('GET', `/api/conversations/${left}/compare/${right}`);
}

/** Reads the messages of a round, as its conversation shows them. */
export async function readRound(id: string, number: number): Promise<Message[]> {
  const query = new URLSearchParams({ before: String(number + 1), limit: '1' });
  const page = await request<OlderRounds>('GET', `/api/conversations/${id}/messages?${query}`);
  return page.rounds.find((round) => round.number === number)?.messages ?? [];
}

/** From all replies of a round, or from one of them alone. */
export function branch(id: string, round: number, messageId?: string): Promise<Conversation> {
  const from = { id: ulid(), at_round: round, ...(messageId && { message_id: messageId }) };
  return request('POST', `/api/conversations/${id}/branches`, from);
}

export function edit(id: string, round: number, question: Omit<NewEdit, 'id'>): Promise<OpenedTurn> {
  const asked = { id: ulid(), branch_id: ulid(), ...question };
  return request('POST', `/api/conversations/${id}/rounds/${round}/edit`, asked);
}

/** In its last round a reply gets a version beside it; in an earlier one the new version opens a branch. */
export function regenerate(messageId: string, conversationId: string, how: How): Promise<OpenedTurn> {
  const asked = { id: ulid(), branch_id: ulid(), conversation_id: conversationId, ...how };
  return request('POST', `/api/messages/${messageId}/retry`, asked);
}

export function bringBack(id: string, voice: VoiceRef): Promise<OpenedTurn> {
  return request('POST', `/api/conversations/${id}/bring-back`, { id: ulid(), voice });
}

export function removalOfMessage(id: string): Promise<MessageDeletionPreview> {
  return request('GET', `/api/messages/${id}/removal`);
}

export function removeMessage(id: string): Promise<void> {
  return request('DELETE', `/api/messages/${id}`);
}
