/** The layout of rounds, and which reply of each is open. */
import { getContext, setContext } from 'svelte';
import { inspector } from '$lib/panels/inspector.svelte';
import { persisted } from '$lib/ui/persisted.svelte';
import { viewport } from '$lib/ui/viewport.svelte';

export type Layout = 'columns' | 'focus' | 'stack';

export const LAYOUTS: { value: Layout; label: string }[] = [
  { value: 'columns', label: 'Columns' },
  { value: 'focus', label: 'Focus' },
  { value: 'stack', label: 'Stack' },
];

/** As it was chosen on this device. */
export const layout = persisted<Layout>('layout', 'columns');

export class LayoutState {
  /** Lane keys by round key, the last opened first. */
  #open = $state.raw<Record<string, string[]>>({});
  /** Rounds and lanes whose traces are unfolded. */
  #unfolded = $state.raw<Record<string, boolean>>({});

  /** Columns were asked for though there was little room. */
  #insists = $state(false);

  /** Beside a reply that is looked at there is no room for columns: it is open, the others wait as spines. */
  get #isSqueezed(): boolean {
    return inspector.receipt !== null && !viewport.isWide && !viewport.isNarrow;
  }

  /** As it is seen now. */
  get layout(): Layout {
    return layout.value === 'columns' && this.#isSqueezed && !this.#insists ? 'focus' : layout.value;
  }

  set layout(chosen: Layout) {
    this.#insists = this.#isSqueezed;
    layout.value = chosen;
  }

  nextLayout(): Layout {
    const at = LAYOUTS.findIndex((each) => each.value === this.layout);
    this.layout = LAYOUTS[(at + 1) % LAYOUTS.length]!.value;
    return this.layout;
  }

  /** The lane of a round that was opened last; among some of its lanes, as where each step has tabs of its own. */
  openIn(round: string, among?: { key: string }[]): string | undefined {
    const opened = this.#open[round] ?? [];
    return among ? opened.find((key) => among.some((lane) => lane.key === key)) : opened[0];
  }

  open(round: string, lane: string): void {
    const others = (this.#open[round] ?? []).filter((key) => key !== lane);
    this.#open = { ...this.#open, [round]: [lane, ...others] };
  }

  isUnfolded(round: string, lane: string): boolean {
    return this.#unfolded[`${round} ${lane}`] ?? false;
  }

  fold(round: string, lane: string): void {
    const name = `${round} ${lane}`;
    this.#unfolded = { ...this.#unfolded, [name]: !this.#unfolded[name] };
  }
}

const KEY = Symbol('layout state');

export function provideLayoutState(): LayoutState {
  return setContext(KEY, new LayoutState());
}

export function useLayoutState(): LayoutState {
  return getContext<LayoutState>(KEY);
}
