/** Tooltips: one for the whole page. An attachment names an element; Tooltips.svelte draws the current one. */
import type { Attachment } from 'svelte/attachments';

export interface Tooltip {
  text: string;
  keys?: string | undefined;
  side?: 'top' | 'bottom' | 'right';
}

const WAIT_MS = 400;

class Tips {
  shown = $state.raw<{ tooltip: Tooltip; anchor: Element } | null>(null);
  #timer = 0;

  point(tooltip: Tooltip, anchor: Element, wait: number): void {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => (this.shown = { tooltip, anchor }), wait);
  }

  hide(anchor?: Element): void {
    clearTimeout(this.#timer);
    if (!this.shown || (anchor && this.shown.anchor !== anchor)) return;
    // Removing a focused element blurs it in the middle of a render, where no state may change.
    queueMicrotask(() => (this.shown = null));
  }
}

export const tooltips = new Tips();

export function tooltip(read: () => Tooltip | null): Attachment<HTMLElement> {
  return (element) => {
    const point = (wait: number) => {
      const said = read();
      if (said) tooltips.point(said, element, wait);
    };
    // A finger has no hover: the name is in the label, and a tip would only stay behind.
    const enter = (event: PointerEvent) =>
      event.pointerType === 'mouse' && point(tooltips.shown ? 0 : WAIT_MS);
    const focus = () => element.matches(':focus-visible') && point(0);
    const hide = () => tooltips.hide(element);
    const hideAtOnce = () => tooltips.hide();
    const escape = (event: KeyboardEvent) => event.key === 'Escape' && hide();
    element.addEventListener('pointerenter', enter);
    element.addEventListener('pointerleave', hideAtOnce);
    element.addEventListener('pointerdown', hideAtOnce);
    element.addEventListener('focus', focus);
    element.addEventListener('blur', hideAtOnce);
    element.addEventListener('keydown', escape);
    return () => {
      hide();
      element.removeEventListener('pointerenter', enter);
      element.removeEventListener('pointerleave', hideAtOnce);
      element.removeEventListener('pointerdown', hideAtOnce);
      element.removeEventListener('focus', focus);
      element.removeEventListener('blur', hideAtOnce);
      element.removeEventListener('keydown', escape);
    };
  };
}
