/** Keyboard navigation through rounds and replies. Reads the page: it moves through the elements on it. */
import { tick } from 'svelte';
import type { LayoutState } from '$lib/lanes/layoutState.svelte';
import type { ScrollAnchor } from '$lib/ui/scrollAnchor.svelte';

export class KeyboardNavigation {
  constructor(
    private readonly scroller: () => HTMLElement | undefined,
    private readonly layoutState: LayoutState,
    private readonly scrollAnchor: ScrollAnchor,
  ) {}

  /** The reply that has focus, or holds what has it. */
  get current(): HTMLElement | null {
    const found = document.activeElement?.closest<HTMLElement>('[data-lane]') ?? null;
    return found && this.scroller()?.contains(found) ? found : null;
  }

  /** The round it is in, else the one at the top of the view. */
  get roundAtHand(): HTMLElement | undefined {
    const rounds = this.#rounds();
    const name = this.current?.dataset.round;
    return name ? rounds.find((round) => round.dataset.roundName === name) : rounds[this.#inView(rounds)];
  }

  mind(step: 1 | -1): void {
    const here = this.current;
    const stops = this.#stops(here?.dataset.round ?? this.#lastRound());
    const at = here ? stops.indexOf(here) + step : step > 0 ? 0 : stops.length - 1;
    this.#goTo(stops[at]);
  }

  seat(number: number): void {
    const stops = this.#stops(this.current?.dataset.round ?? this.#lastRound());
    this.#goTo(stops.find((stop) => stop.dataset.seat === String(number)));
  }

  round(step: 1 | -1): void {
    const rounds = this.#rounds();
    const name = this.current?.dataset.round;
    const at = name ? rounds.findIndex((round) => round.dataset.roundName === name) : this.#inView(rounds);
    const next = rounds[at + step];
    if (!next) return;
    const open = this.layoutState.openIn(next.dataset.roundName!);
    const stops = this.#stops(next.dataset.roundName);
    (stops.find((stop) => stop.dataset.lane === open) ?? stops[0])?.focus({ preventScroll: true });
    this.scrollAnchor.bring(next);
  }

  async #goTo(stop: HTMLElement | undefined): Promise<void> {
    const { round, lane } = stop?.dataset ?? {};
    if (!round || !lane) return;
    this.layoutState.open(round, lane);
    await tick();
    const shown = this.#stops(round).find((each) => each.dataset.lane === lane);
    shown?.focus({ preventScroll: true });
    shown?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  #rounds(): HTMLElement[] {
    return [...(this.scroller()?.querySelectorAll<HTMLElement>('[data-round-name]') ?? [])];
  }

  /** The round at the top of the view. */
  #inView(rounds: HTMLElement[]): number {
    const edge = (this.scroller()?.getBoundingClientRect().top ?? 0) + 60;
    return rounds.findIndex((round) => round.getBoundingClientRect().bottom > edge);
  }

  #lastRound(): string | undefined {
    return this.#rounds().at(-1)?.dataset.roundName;
  }

  #stops(round: string | undefined): HTMLElement[] {
    const all = this.scroller()?.querySelectorAll<HTMLElement>('[data-lane]') ?? [];
    return [...all].filter((stop) => stop.dataset.round === round);
  }
}
