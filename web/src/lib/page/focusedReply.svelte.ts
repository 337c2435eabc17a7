/** The reply that has focus, and the one that had it last: commands chosen by name act on the latter. */
import type { Message } from '$lib/api/types';
import type { KeyboardNavigation } from '$lib/feed/keyboardNavigation';
import type { ConversationData } from './conversationData.svelte';

export class FocusedReply {
  #lastId = $state<string | null>(null);
  /** The reply that had focus last, else the newest one. */
  readonly last = $derived.by<Message | null>(() => {
    const replies = this.data.rounds.flatMap(({ messages }) => messages).filter(({ voice }) => voice);
    return replies.find(({ id }) => id === this.#lastId) ?? replies.at(-1) ?? null;
  });

  constructor(
    private readonly data: ConversationData,
    private readonly navigation: KeyboardNavigation,
  ) {}

  /** The newest version of the reply that has focus now. */
  get current(): Message | null {
    const { round, lane } = this.navigation.current?.dataset ?? {};
    return this.data.newest(round, lane);
  }

  /** To be called when focus moves. */
  remember(): void {
    this.#lastId = this.current?.id ?? this.#lastId;
  }
}
