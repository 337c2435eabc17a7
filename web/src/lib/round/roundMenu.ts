/** What the menu of every round offers besides what is the round's own: told by the conversation. */
import { getContext, setContext } from 'svelte';
import type { MenuItem } from '$lib/ui/menu';

const KEY = Symbol('round-menu');

export function provideRoundMenu(items: () => MenuItem[]): void {
  setContext(KEY, items);
}

export function useRoundMenu(): () => MenuItem[] {
  return getContext<(() => MenuItem[]) | undefined>(KEY) ?? (() => []);
}
