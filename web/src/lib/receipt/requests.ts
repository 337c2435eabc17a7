/** Reading a receipt. */
import { ApiError, request } from '$lib/api/client';
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
