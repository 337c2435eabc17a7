/** The reply shown over the whole width: reads it from the address, opens it and closes it. */
import { goto } from '$app/navigation';
import type { Message } from '$lib/api/types';
import type { ScrollTarget } from '$lib/feed/loadedRange';
import { routes } from '$lib/routes';
import type { ConversationData } from './conversationData.svelte';

const STAY = { keepFocus: true, noScroll: true };

export class SingleReplyState {
  /** The row and lane of the reply, once they are here. */
  readonly shown = $derived.by(() => {
    const target = this.target();
    return target && this.data.find(target);
  });
  /** Opened on this page: the browser's own way back leads to where the reply was. */
  #isOpenedHere = false;
  #lastId: string | null = null;

  constructor(
    private readonly data: ConversationData,
    private readonly target: () => ScrollTarget | null,
    private readonly scroller: () => HTMLElement | undefined,
  ) {
    $effect(() => this.#giveFocusBack());
  }

  get replyId(): string | null {
    return this.shown && this.target()!.replyId;
  }

  /** Opens the reply, or closes it if it is the one shown. */
  async open(message: Message): Promise<void> {
    if (this.target()?.replyId === message.id) return this.close();
    this.#isOpenedHere = true;
    await goto(routes.alone(this.data.id, message.round_number, message.id), STAY);
  }

  async close(): Promise<void> {
    if (this.#isOpenedHere) history.back();
    else await goto(routes.conversation(this.data.id), { replaceState: true, ...STAY });
  }

  /** Back in its round, the reply that was read has focus, and nothing has moved. */
  #giveFocusBack(): void {
    const now = this.replyId;
    if (this.#lastId && !now) {
      this.#isOpenedHere = false;
      const card = this.scroller()?.querySelector<HTMLElement>(`[data-message="${this.#lastId}"]`);
      card?.focus({ preventScroll: true });
    }
    this.#lastId = now;
  }
}
