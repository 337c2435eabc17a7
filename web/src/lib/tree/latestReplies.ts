/**
 * The replies of a round as they stand, by seat, a synthesis last: of each its newest version, and no outline,
 * which is part of a synthesis.
 */
import type { Message } from '$lib/api/types';

export function latestOf(messages: Message[]): Message[] {
  const replaced = new Set(messages.map((message) => message.replaces_id));
  return messages
    .filter((message) => message.voice && !replaced.has(message.id) && message.step !== 'outline')
    .sort((a, b) => Number(isClosing(a)) - Number(isClosing(b)) || seatOf(a) - seatOf(b));
}

const isClosing = (message: Message) => message.step === 'synthesis';
const seatOf = (message: Message) => message.voice?.seat ?? 0;
