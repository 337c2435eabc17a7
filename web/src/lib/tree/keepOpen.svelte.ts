/** A page beside a conversation holds it open, as the conversation's own page does: its branches stay in step. */
import { untrack } from 'svelte';
import { ApiError } from '$lib/api/client';
import { store } from '$lib/live/store.svelte';

/** Called while a component is made; `onrefused` hears why a conversation cannot be read. */
export function keepOpen(id: () => string, onrefused?: (reason: ApiError) => void): void {
  $effect(() => {
    const held = id();
    untrack(() => void store.open(held).catch((reason) => reason instanceof ApiError && onrefused?.(reason)));
    return () => store.close(held);
  });
}
