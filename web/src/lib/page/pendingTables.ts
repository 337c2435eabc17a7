/** Tables that were set for conversations whose first question went to one mind alone. */
import type { Setting } from '$lib/council/initialSetting';

const laid = new Map<string, Setting>();

export function savePendingTable(conversationId: string, setting: Setting): void {
  laid.set(conversationId, setting);
}

export function pendingTableFor(conversationId: string): Setting | undefined {
  return laid.get(conversationId);
}
