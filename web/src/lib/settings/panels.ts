/** The pages of the settings, in their order; each is fetched when it is opened. */
import KeyboardIcon from '@lucide/svelte/icons/keyboard';
import Layers from '@lucide/svelte/icons/layers';
import Monitor from '@lucide/svelte/icons/monitor';
import PaletteIcon from '@lucide/svelte/icons/palette';
import Users from '@lucide/svelte/icons/users-round';
import type { Component } from 'svelte';
import type { Panel } from '../routes';
import type { IconComponent } from '$lib/ui/icon';

interface Entry {
  id: Panel;
  title: string;
  group: 'Workspace' | 'You';
  icon: IconComponent;
  view: () => Promise<{ default: Component }>;
}

export const PANELS: Entry[] = [
  {
    id: 'models',
    title: 'Models and keys',
    group: 'Workspace',
    icon: Layers,
    view: () => import('./Models.svelte'),
  },
  {
    id: 'personas',
    title: 'Personas',
    group: 'Workspace',
    icon: Users,
    view: () => import('../personas/Personas.svelte'),
  },
  {
    id: 'appearance',
    title: 'Appearance',
    group: 'You',
    icon: PaletteIcon,
    view: () => import('./Appearance.svelte'),
  },
  {
    id: 'keyboard',
    title: 'Keyboard',
    group: 'You',
    icon: KeyboardIcon,
    view: () => import('./Keyboard.svelte'),
  },
  {
    id: 'sessions',
    title: 'Devices and sign-in',
    group: 'You',
    icon: Monitor,
    view: () => import('./Sessions.svelte'),
  },
];
