/** Menu items of a conversation about its branches: map, comparison, replay. */
import GitCompare from '@lucide/svelte/icons/git-compare';
import Network from '@lucide/svelte/icons/network';
import Split from '@lucide/svelte/icons/split';
import { goto } from '$app/navigation';
import type { Conversation } from '$lib/api/types';
import { inspector } from '$lib/panels/inspector.svelte';
import { routes } from '$lib/routes';
import type { MenuItem } from '$lib/ui/menu';
import { viewport } from '$lib/ui/viewport.svelte';

type Placed = Pick<Conversation, 'id' | 'parent_id'>;

/** Returns the first choice to compare a branch with: its parent, else a child, else any other branch of the tree. */
export function counterpart<T extends Placed>(family: T[], here: Placed): T | undefined {
  return (
    family.find((each) => each.id === here.parent_id) ??
    family.find((each) => each.parent_id === here.id) ??
    family.find((each) => each.id !== here.id)
  );
}

/** The earlier one stands on the left. */
export function comparing(here: Placed, other: Placed): string {
  return other.id === here.parent_id ? routes.compare(other.id, here.id) : routes.compare(here.id, other.id);
}

export function mapItem(id: string): MenuItem {
  const show = () => {
    if (viewport.isPhone) inspector.showTree(id);
    else void goto(routes.map(id));
  };
  return { label: 'Branch map', icon: Network, run: show };
}

export function compareItem(label: string, here: Placed, other: Placed): MenuItem {
  return { label, icon: GitCompare, run: () => void goto(comparing(here, other)) };
}

export function askAgainItem(run: () => void): MenuItem {
  return { label: 'Ask everything again with other models', icon: Split, run };
}
