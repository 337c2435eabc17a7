/** The state of the sidebar: full or a rail on wide screens, a drawer on narrow ones. */
import { persisted } from '$lib/ui/persisted.svelte';
import { viewport } from '$lib/ui/viewport.svelte';

const rail = persisted('sidebar-rail', false);
let isOpen = $state(false);

export const drawer = {
  get isOpen() {
    return isOpen;
  },
  set isOpen(open: boolean) {
    isOpen = open;
  },
  get isRail() {
    return rail.value && !viewport.isNarrow;
  },
  toggle(): void {
    if (viewport.isNarrow) isOpen = !isOpen;
    else rail.value = !rail.value;
  },
};
