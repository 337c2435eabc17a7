/** Keeps one block of markup on the page up to date with few changes, then draws formulas and highlights code. */
import { mount, unmount } from 'svelte';
import { dress, type Citations } from './citations';
import CodeBlock from './CodeBlock.svelte';
import { whenIdle } from './idle';
import { draw } from './math';
import { morph, type Origins } from './morph';
import { sanitize } from './sanitize';

export class BlockView {
  readonly #origins: Origins = new WeakMap();
  readonly #later = new Map<Element, () => void>();
  readonly #programs = new Map<Element, ReturnType<typeof mount>>();

  constructor(private readonly element: HTMLElement) {}

  show(html: string, isSettled: boolean): void {
    morph(this.element, sanitize(html), this.#origins);
    this.#forgetRemoved();
    for (const formula of this.element.querySelectorAll('.math'))
      this.#plan(formula, () => this.#draw(formula));
    if (isSettled) for (const figure of this.element.querySelectorAll('figure.code')) this.#dress(figure);
  }

  /** Updates the citation marks; call it again whenever the known files or rounds change. */
  cite(known: Citations): void {
    for (const mark of this.element.querySelectorAll('.cite')) {
      const origin = this.#origins.get(mark) ?? mark.outerHTML;
      if (dress(mark, known)) this.#origins.set(mark, origin);
      else this.#origins.delete(mark);
    }
  }

  close(): void {
    for (const cancel of this.#later.values()) cancel();
    for (const program of this.#programs.values()) void unmount(program);
  }

  #plan(element: Element, work: () => void): void {
    if (this.#origins.has(element) || this.#later.has(element)) return;
    this.#later.set(element, whenIdle(element, work));
  }

  async #draw(formula: Element): Promise<void> {
    this.#later.delete(formula);
    if (this.#origins.has(formula)) return; // planned again while it was drawn
    const origin = formula.outerHTML;
    const drawn = await draw(formula.textContent, formula.classList.contains('display'));
    if (!formula.isConnected || formula.outerHTML !== origin) return;
    this.#origins.set(formula, origin);
    if (drawn) formula.replaceChildren(drawn);
  }

  #dress(figure: Element): void {
    if (this.#programs.has(figure)) return;
    this.#origins.set(figure, figure.outerHTML);
    const code = figure.querySelector('code');
    const props = {
      text: code?.textContent.replace(/\n$/, '') ?? '',
      language: /language-(\S+)/.exec(code?.className ?? '')?.[1] ?? '',
      label: figure.querySelector('figcaption')?.textContent ?? '',
      isClosed: true,
    };
    figure.replaceChildren();
    this.#programs.set(figure, mount(CodeBlock, { target: figure, props: { ...props, isBare: true } }));
  }

  #forgetRemoved(): void {
    for (const [element, cancel] of this.#later) {
      if (this.element.contains(element)) continue;
      cancel();
      this.#later.delete(element);
    }
    for (const [figure, program] of this.#programs) {
      if (this.element.contains(figure)) continue;
      void unmount(program);
      this.#programs.delete(figure);
    }
  }
}
