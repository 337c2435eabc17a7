/** The outbox of this browser as reactive state, stored on the device. */
import { untrack } from 'svelte';
import { request } from '$lib/api/client';
import { store } from '$lib/live/store.svelte';
import { Outbox, type NewOutgoing, type Outgoing } from './outbox';

const KEY = 'tertulia.outbox';

class OutgoingQuestions {
  items = $state.raw<Outgoing[]>([]);

  #outbox = new Outbox(
    (turn) => request('POST', '/api/turn', turn),
    { load, keep },
    (items) => (this.items = items),
  );

  constructor() {
    // Waiting questions are sent when the connection opens, on any page; this effect is never removed.
    $effect.root(() => {
      $effect(() => {
        if (store.connection.state === 'open') untrack(() => this.#outbox.resume());
      });
    });
  }

  of(conversationId: string, userId: string | undefined): Outgoing[] {
    return this.items.filter((item) => item.conversation_id === conversationId && item.created_by === userId);
  }

  send(item: NewOutgoing): void {
    this.#outbox.send(item);
  }

  retry(id: string): void {
    this.#outbox.retry(id);
  }

  remove(id: string): void {
    this.#outbox.remove(id);
  }
}

function load(): Outgoing[] {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '[]') as Outgoing[];
  } catch {
    return [];
  }
}

function keep(items: Outgoing[]): void {
  try {
    if (items.length) localStorage.setItem(KEY, JSON.stringify(items));
    else localStorage.removeItem(KEY);
  } catch {
    // A browser that keeps nothing still sends while the page is open.
  }
}

export const outboxStore = new OutgoingQuestions();
