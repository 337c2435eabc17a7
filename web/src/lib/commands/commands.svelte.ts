/**
 * Every action a person can take, as data. Menus, the palette, the shortcut sheet and the keys all read this list.
 * A component adds its own while it is on the page; of two with the same keys, the later one wins.
 */
import { untrack } from 'svelte';
import type { IconComponent } from '$lib/ui/icon';

export const GROUPS = ['Anywhere', 'Writing', 'Reading', 'On a reply'] as const;
export type Group = (typeof GROUPS)[number];

export interface Command {
  id: string;
  title: string;
  group: Group;
  /** "mod+k", "n", "g p", "shift+r", "ArrowLeft"; several are separated by a comma. */
  keys?: string;
  icon?: IconComponent;
  /** Whether it makes sense now. */
  when?: () => boolean;
  /** Without it the command only stands in the sheet: its component listens to the key itself. */
  run?: () => void;
  /** false: only by key. */
  palette?: boolean;
  /** false: not in the sheet. */
  sheet?: boolean;
}

class Commands {
  #lists = $state.raw<(() => Command[])[]>([]);

  all = $derived([...new Map(this.#lists.flatMap((read) => read()).map((each) => [each.id, each])).values()]);

  add(read: () => Command[]): () => void {
    this.#lists = [...this.#lists, read];
    return () => (this.#lists = this.#lists.filter((list) => list !== read));
  }
}

export const commands = new Commands();

/** Adds commands while a component is on the page; call it in the component's script. */
export function useCommands(read: () => Command[]): void {
  $effect(() => untrack(() => commands.add(read)));
}
