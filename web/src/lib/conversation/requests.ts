/** What one can ask of a conversation and its replies. Results come by the stream. */
import { request } from '$lib/api/client';
import { ulid } from '$lib/api/ulid';

export function stop(turnId: string, replyId?: string): Promise<void> {
  return request('POST', `/api/turns/${turnId}/stop`, replyId ? { reply_id: replyId } : {});
}

/** Asks again for this reply, perhaps of another model. */
export function retry(messageId: string, model?: string): Promise<void> {
  return request('POST', `/api/messages/${messageId}/retry`, { id: ulid(), ...(model && { model }) });
}

/** Goes on where the reply broke off. */
export function goOn(messageId: string): Promise<void> {
  return request('POST', `/api/messages/${messageId}/continue`, { id: ulid() });
}
