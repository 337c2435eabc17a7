/** The pages of the settings, in their order. */
import KeyboardIcon from '@lucide/svelte/icons/keyboard';
import Layers from '@lucide/svelte/icons/layers';
import Monitor from '@lucide/svelte/icons/monitor';
import PaletteIcon from '@lucide/svelte/icons/palette';
import type { Component } from 'svelte';
import type { Panel } from '../routes';
import type { Picture } from '../ui/picture';
import Appearance from './Appearance.svelte';
import Keyboard from './Keyboard.svelte';
import Models from './Models.svelte';
import Sessions from './Sessions.svelte';

interface Entry {
  id: Panel;
  title: string;
  group: 'Workspace' | 'You';
  icon: Picture;
  view: Component;
}

export const PANELS: Entry[] = [
  { id: 'models', title: 'Models and keys', group: 'Workspace', icon: Layers, view: Models },
  { id: 'appearance', title: 'Appearance', group: 'You', icon: PaletteIcon, view: Appearance },
  { id: 'keyboard', title: 'Keyboard', group: 'You', icon: KeyboardIcon, view: Keyboard },
  { id: 'sessions', title: 'Devices and sign-in', group: 'You', icon: Monitor, view: Sessions },
];
