/** Loads the receipt of the reply that is shown; a newer request replaces an older one. */
import type { Receipt } from '$lib/api/types';
import { readReceipt } from './requests';

export type Loaded = { receipt: Receipt } | 'not kept' | { problem: string };

export class ReceiptLoader {
  found = $state.raw<Loaded | null>(null);

  #wanted = '';

  async read(messageId: string): Promise<void> {
    this.#wanted = messageId;
    this.found = null;
    const found = await read(messageId);
    if (this.#wanted === messageId) this.found = found;
  }
}

async function read(messageId: string): Promise<Loaded> {
  try {
    const receipt = await readReceipt(messageId);
    return receipt ? { receipt } : 'not kept';
  } catch (reason) {
    return { problem: reason instanceof Error ? reason.message : 'Try again in a moment.' };
  }
}
