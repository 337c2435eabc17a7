/** Keeps a conversation open in the store while another page shows it, so that its branches stay up to date. */
import { untrack } from 'svelte';
import { ApiError } from '$lib/api/client';
import { store } from '$lib/live/store.svelte';

/** Keeps a conversation open while a component lives; call it in the component's script. `onrefused` gets the error when it cannot be read. */
export function keepOpen(id: () => string, onrefused?: (reason: ApiError) => void): void {
  $effect(() => {
    const held = id();
    untrack(() => void store.open(held).catch((reason) => reason instanceof ApiError && onrefused?.(reason)));
    return () => store.close(held);
  });
}
