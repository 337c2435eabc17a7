/** Reading a receipt, and asking again with something left out. */
import { ApiError, request } from '$lib/api/client';
import { ulid } from '$lib/api/ulid';
import type { Receipt } from '$lib/api/types';

/** Null when it was not kept. */
export async function readReceipt(messageId: string): Promise<Receipt | null> {
  try {
    return await request<Receipt>('GET', `/api/messages/${messageId}/receipt`);
  } catch (reason) {
    if (reason instanceof ApiError && reason.status === 404) return null;
    throw reason;
  }
}

export function askWithout(messageId: string, sourceId: string): Promise<void> {
  return request('POST', `/api/messages/${messageId}/retry`, { id: ulid(), without: [sourceId] });
}
