/** The icons of the layouts. */
import AppWindow from '@lucide/svelte/icons/app-window';
import Columns3 from '@lucide/svelte/icons/columns-3';
import Rows3 from '@lucide/svelte/icons/rows-3';
import type { IconComponent } from '$lib/ui/icon';
import type { Layout } from './layoutState.svelte';

export const LAYOUT_ICONS: Record<Layout, IconComponent> = {
  columns: Columns3,
  focus: AppWindow,
  stack: Rows3,
};
