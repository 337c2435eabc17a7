/** Tables chosen for conversations whose first question went to one voice alone: used from the second question on. */
import type { RoundSettings } from '$lib/council/initialSetting';

const laid = new Map<string, RoundSettings>();

export function savePendingTable(conversationId: string, setting: RoundSettings): void {
  laid.set(conversationId, setting);
}

export function pendingTableFor(conversationId: string): RoundSettings | undefined {
  return laid.get(conversationId);
}
