/** Keeps the state in step with the server: applies what the socket delivers, and reads a topic again when asked to. */
import { request } from '../api/client';
import { apply, resyncFor, type Resync } from './apply';
import { Batch } from './batching';
import { Connection, type ConnectionState, type World } from './connection';
import type { Item, Topic } from './items';
import type { LiveState } from './state.svelte';

/** Functions the store provides to the synchronisation. */
export interface Host {
  /** Reads a snapshot of the topic into the state. */
  read(topic: Topic): Promise<void>;
  /** The socket is open. */
  opened(): void;
  /** A topic could not be read. */
  failed(reason: unknown): void;
  signedOut(): void;
}

export class Sync {
  state = $state.raw<ConnectionState>({ state: 'connecting', retryAt: null });
  #gone = $state.raw<Record<Topic, string>>({});
  #refetching = new Set<Topic>();
  #batch = new Batch((items) => this.#receive(items));
  #connection: Connection;

  constructor(
    private readonly live: LiveState,
    world: World,
    private readonly host: Host,
  ) {
    this.#connection = new Connection(
      {
        receive: (items) => this.#batch.push(items),
        changed: (state) => this.#changed(state),
        // A session that ended while we were away is told apart from a server that is down by asking.
        refused: () => void request('GET', '/api/me').catch(() => undefined),
        places: () => Object.entries(this.live.value.cursors),
      },
      world,
    );
  }

  start(): void {
    this.#connection.start();
  }

  stop(): void {
    this.#connection.stop();
    this.#gone = {};
  }

  retryNow(): void {
    this.#connection.retryNow();
  }

  wentOffline(): void {
    this.#connection.wentOffline();
  }

  leave(topic: Topic): void {
    this.#connection.leave(topic);
  }

  /** Returns the reason a topic can no longer be seen; null when it can. */
  goneReason(topic: Topic): string | null {
    return this.#gone[topic] ?? null;
  }

  /** Reads a topic again and follows it from there. */
  async refetch(topic: Topic): Promise<void> {
    if (this.#refetching.has(topic)) return;
    this.#refetching.add(topic);
    try {
      await this.host.read(topic);
      const cursor = this.live.value.cursors[topic];
      if (cursor !== undefined) this.#connection.follow(topic, cursor);
    } finally {
      this.#refetching.delete(topic);
    }
  }

  #changed(state: ConnectionState): void {
    this.state = state;
    if (state.state === 'open') this.host.opened();
  }

  #receive(items: Item[]): void {
    let state = this.live.value;
    const resyncs: Resync[] = [];
    for (const item of items) {
      const resync = resyncFor(state, item);
      if (resync) resyncs.push(resync);
      state = apply(state, item);
      if (item.type === 'signed_out') return this.host.signedOut();
      if (item.type === 'gone') this.#gone = { ...this.#gone, [item.place]: item.reason };
    }
    this.live.value = state;
    for (const resync of distinct(resyncs)) this.#ask(resync);
  }

  #ask(resync: Resync): void {
    if ('refetch' in resync)
      this.refetch(resync.refetch).catch((reason: unknown) => this.host.failed(reason));
    else this.#connection.follow(resync.follow, this.live.value.cursors[resync.follow] ?? 0);
  }
}

function distinct(resyncs: Resync[]): Resync[] {
  return [...new Map(resyncs.map((resync) => [JSON.stringify(resync), resync])).values()];
}
