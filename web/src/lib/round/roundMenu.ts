/** Svelte context: menu items that the conversation adds to the menu of every round. */
import { getContext, setContext } from 'svelte';
import type { MenuItem } from '$lib/ui/menu';

const KEY = Symbol('round-menu');

export function provideRoundMenu(items: () => MenuItem[]): void {
  setContext(KEY, items);
}

export function useRoundMenu(): () => MenuItem[] {
  return getContext<(() => MenuItem[]) | undefined>(KEY) ?? (() => []);
}
