/** The replies of a round as they stand: of each its newest version, and no outline, which is part of a synthesis. */
import type { Message } from '$lib/api/types';

export function latestOf(messages: Message[]): Message[] {
  const replaced = new Set(messages.map((message) => message.replaces_id));
  return messages.filter(
    (message) => message.voice && !replaced.has(message.id) && message.step !== 'outline',
  );
}
