/** Theme, density, size and reading font of this device. static/appearance.js reads the same before the first paint. */
import { persisted } from '$lib/ui/persisted.svelte';

export type Theme = 'system' | 'light' | 'dark';
export type Density = 'comfortable' | 'compact';
export type Reading = 'serif' | 'plain';
export type Size = 'small' | 'medium' | 'large';

const ALL = ['theme', 'density', 'reading', 'size'] as const;

interface Choices {
  theme?: Exclude<Theme, 'system'>;
  density?: 'compact';
  reading?: 'plain';
  size?: Exclude<Size, 'medium'>;
}

const saved = persisted<Choices>('appearance', {});
const letters = persisted('single-letters', true);

export const appearance = {
  get theme(): Theme {
    return saved.value.theme ?? 'system';
  },
  set theme(theme: Theme) {
    choose({ theme: theme === 'system' ? undefined : theme });
  },
  get density(): Density {
    return saved.value.density ?? 'comfortable';
  },
  set density(density: Density) {
    choose({ density: density === 'compact' ? density : undefined });
  },
  get reading(): Reading {
    return saved.value.reading ?? 'serif';
  },
  set reading(reading: Reading) {
    choose({ reading: reading === 'plain' ? reading : undefined });
  },
  get size(): Size {
    return saved.value.size ?? 'medium';
  },
  set size(size: Size) {
    choose({ size: size === 'medium' ? undefined : size });
  },
  /** Whether single letters are shortcuts. */
  get letters(): boolean {
    return letters.value;
  },
  set letters(isOn: boolean) {
    letters.value = isOn;
  },
};

/** Light and dark in turn, from whichever is seen now. */
export function switchTheme(): void {
  const isDark =
    appearance.theme === 'dark' ||
    (appearance.theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  appearance.theme = isDark ? 'light' : 'dark';
}

function choose(change: { [name in keyof Choices]?: Choices[name] | undefined }): void {
  const chosen = { ...saved.value, ...change };
  saved.value = JSON.parse(JSON.stringify(chosen)) as Choices;
  for (const name of ALL) {
    const value = saved.value[name];
    if (value) document.documentElement.dataset[name] = value;
    else document.documentElement.removeAttribute(`data-${name}`);
  }
}
