/** Requests about replies: stop, retry, continue, synthesise. Results come by the stream. */
import { request } from '$lib/api/client';
import type { VoiceRef } from '$lib/api/types';
import { ulid } from '$lib/api/ulid';

export function stop(turnId: string, replyId?: string): Promise<void> {
  return request('POST', `/api/turns/${turnId}/stop`, replyId ? { reply_id: replyId } : {});
}

/** A reply that waits for its provider tries again at once. */
export function retryNow(turnId: string, replyId: string): Promise<void> {
  return request('POST', `/api/turns/${turnId}/retry-now`, { reply_id: replyId });
}

/** Goes on where the reply broke off. */
export function goOn(messageId: string): Promise<void> {
  return request('POST', `/api/messages/${messageId}/continue`, { id: ulid() });
}

/** The chair reads a round that was answered before, and closes it. */
export function synthesise(
  conversationId: string,
  round: number,
  chair: VoiceRef,
  brief: string,
): Promise<void> {
  const path = `/api/conversations/${conversationId}/rounds/${round}/synthesis`;
  return request('POST', path, { id: ulid(), chair, brief });
}
