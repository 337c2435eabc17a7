/** The author of a message: a voice, the person, or another person by name. */
import type { Message } from '../api/types';
import { store } from '$lib/live/store.svelte';

type Said = Pick<Message, 'voice' | 'created_by'>;

/** "Atlas", "You", "Ada" */
export function authorOf(message: Said): string {
  return message.voice?.name ?? personNamed(message.created_by);
}

/** Oneself is addressed; everyone else has a name. */
export function personNamed(userId: string): string {
  return userId === store.me?.id ? 'You' : store.nameOf(userId);
}
