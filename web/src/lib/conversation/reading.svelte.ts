/** How rounds are laid out for this person, and which reply of each is the open one. */
import { getContext, setContext } from 'svelte';
import { remember } from '$lib/ui/remember.svelte';

export type Layout = 'columns' | 'focus' | 'stack';

export const LAYOUTS: { value: Layout; label: string }[] = [
  { value: 'columns', label: 'Columns' },
  { value: 'focus', label: 'Focus' },
  { value: 'stack', label: 'Stack' },
];

const layout = remember<Layout>('layout', 'columns');

export class Reading {
  /** Lane keys by round key. */
  #open = $state.raw<Record<string, string>>({});
  /** Rounds and lanes whose traces are unfolded. */
  #unfolded = $state.raw<Record<string, boolean>>({});

  get layout(): Layout {
    return layout.value;
  }

  set layout(chosen: Layout) {
    layout.value = chosen;
  }

  nextLayout(): Layout {
    const at = LAYOUTS.findIndex((each) => each.value === layout.value);
    layout.value = LAYOUTS[(at + 1) % LAYOUTS.length]!.value;
    return layout.value;
  }

  openIn(round: string): string | undefined {
    return this.#open[round];
  }

  open(round: string, lane: string): void {
    this.#open = { ...this.#open, [round]: lane };
  }

  isUnfolded(round: string, lane: string): boolean {
    return this.#unfolded[`${round} ${lane}`] ?? false;
  }

  fold(round: string, lane: string): void {
    const name = `${round} ${lane}`;
    this.#unfolded = { ...this.#unfolded, [name]: !this.#unfolded[name] };
  }
}

const KEY = Symbol('reading');

export function provideReading(): Reading {
  return setContext(KEY, new Reading());
}

export function useReading(): Reading {
  return getContext<Reading>(KEY);
}
