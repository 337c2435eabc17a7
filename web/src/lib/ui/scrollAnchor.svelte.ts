/**
 * Scroll anchoring while text arrives.
 *
 * A question just sent goes to the top and stays there. Where one text is read at a time the view follows it,
 * but only while it is stuck to the end: any move away lets go at once, coming back to the end holds on again.
 * Nothing else ever moves the view.
 */
const NEAR_PX = 80;
const LEAVES = new Set(['ArrowUp', 'PageUp', 'Home']);

export class ScrollAnchor {
  isStuck = $state(false);
  #scroller: HTMLElement | null = null;
  #lastTop = 0;

  /** To be attached to the element that scrolls. */
  attach = (scroller: HTMLElement): (() => void) => {
    this.#scroller = scroller;
    const leave = () => this.release();
    const turn = (event: WheelEvent) => event.deltaY < 0 && leave();
    const press = (event: KeyboardEvent) => LEAVES.has(event.key) && leave();
    const select = () => {
      const selection = document.getSelection();
      if (selection && !selection.isCollapsed && scroller.contains(selection.anchorNode)) leave();
    };
    const arrive = () => this.#arrived();
    scroller.addEventListener('wheel', turn, { passive: true });
    scroller.addEventListener('touchmove', leave, { passive: true });
    scroller.addEventListener('keydown', press);
    const focus = (event: FocusEvent) => this.#isAboveEnd(event.target as Element) && leave();
    scroller.addEventListener('focusin', focus);
    scroller.addEventListener('scroll', arrive, { passive: true });
    document.addEventListener('selectionchange', select);
    return () => {
      scroller.removeEventListener('wheel', turn);
      scroller.removeEventListener('touchmove', leave);
      scroller.removeEventListener('keydown', press);
      scroller.removeEventListener('focusin', focus);
      scroller.removeEventListener('scroll', arrive);
      document.removeEventListener('selectionchange', select);
      this.#scroller = null;
    };
  };

  release(): void {
    this.isStuck = false;
  }

  /** The end, and stay there. */
  toEnd(): void {
    this.isStuck = true;
    this.follow();
  }

  /** More text has come. */
  follow(): void {
    const scroller = this.#scroller;
    if (this.isStuck && scroller) this.#moveTo(scroller.scrollHeight - scroller.clientHeight);
  }

  /** An element to a little under the top edge. */
  bring(element: Element, under: number = 16): void {
    const scroller = this.#scroller;
    if (!scroller) return;
    const distance = element.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
    this.#moveTo(scroller.scrollTop + distance - under);
  }

  /** Does something above the view and leaves what is in view where it was. */
  async keep(element: Element | null | undefined, change: () => Promise<void>): Promise<void> {
    const before = element?.getBoundingClientRect().top;
    await change();
    const scroller = this.#scroller;
    if (before === undefined || !element?.isConnected || !scroller) return;
    const moved = element.getBoundingClientRect().top - before;
    if (Math.abs(moved) >= 1) this.#moveTo(scroller.scrollTop + moved);
  }

  get isAtEnd(): boolean {
    return this.distanceToEnd <= NEAR_PX;
  }

  get distanceToEnd(): number {
    const scroller = this.#scroller;
    return scroller ? scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop : 0;
  }

  #moveTo(top: number): void {
    this.#scroller!.scrollTop = top;
    this.#lastTop = this.#scroller!.scrollTop;
  }

  /** A scroll we did not make: by the bar, a key, or the browser. */
  #arrived(): void {
    const top = this.#scroller!.scrollTop;
    if (top < this.#lastTop - 1 && this.distanceToEnd > NEAR_PX) this.release();
    else if (top > this.#lastTop + 1 && this.distanceToEnd <= NEAR_PX) this.isStuck = true;
    this.#lastTop = top;
  }

  #isAboveEnd(element: Element): boolean {
    const end = this.#scroller!.getBoundingClientRect().bottom + this.distanceToEnd;
    return element.getBoundingClientRect().bottom < end - this.#scroller!.clientHeight / 2;
  }
}
