/** A page beside a conversation holds it open, as the conversation's own page does: its branches stay in step. */
import { untrack } from 'svelte';
import { house } from '$lib/live/house.svelte';

/** Called while a component is made. */
export function holdOpen(id: () => string): void {
  $effect(() => {
    const held = id();
    untrack(() => void house.open(held).catch(() => undefined));
    return () => house.close(held);
  });
}
