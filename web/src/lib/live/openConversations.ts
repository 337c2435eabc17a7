/** The conversations that a page shows now, and the rounds that were read of each. */
import type { Round } from '../api/types';
import * as api from './api';
import { conversationTopic } from './items';
import { LoadedRounds, roundsOf } from './rounds';
import * as snapshots from './snapshots';
import type { LiveState } from './state.svelte';

/** Conversations closed last whose messages stay, so that coming back shows them at once. */
const RECENT = 8;
/** The number of rounds the server returns in a single answer. */
const ROUNDS_AT_ONCE = 100;

export class OpenConversations {
  /** The number of components that show each conversation. */
  #watchers = new Map<string, number>();
  /** Closed conversations, oldest first. */
  #recent: string[] = [];
  #rounds = new Map<string, { messages: unknown; rounds: Round[] }>();
  #loaded = new Map<string, LoadedRounds>();

  constructor(private readonly live: LiveState) {}

  get ids(): string[] {
    return [...this.#watchers.keys()];
  }

  /** Tells whether a conversation's last rounds are loaded and followed. */
  isOpen(id: string): boolean {
    return this.live.follows(conversationTopic(id));
  }

  add(id: string): void {
    this.#watchers.set(id, (this.#watchers.get(id) ?? 0) + 1);
  }

  /** True when nothing shows the conversation any more. */
  release(id: string): boolean {
    const watchers = (this.#watchers.get(id) ?? 1) - 1;
    if (watchers > 0) this.#watchers.set(id, watchers);
    else this.#watchers.delete(id);
    return watchers <= 0;
  }

  /** Sets a closed conversation aside; its messages stay until several others were closed after it. */
  setAside(id: string): void {
    this.live.value = snapshots.leaveConversation(this.live.value, id);
    this.#recent = [...this.#recent.filter((other) => other !== id), id];
    const [oldest] = this.#recent;
    if (this.#recent.length <= RECENT || oldest === undefined) return;
    this.#recent = this.#recent.slice(1);
    if (!this.#watchers.has(oldest)) this.#drop(oldest);
  }

  #drop(id: string): void {
    this.#rounds.delete(id);
    this.#loaded.delete(id);
    this.live.value = snapshots.dropMessages(this.live.value, id);
  }

  /** Reads the last rounds. */
  async read(id: string): Promise<void> {
    const snapshot = await api.readConversation(id);
    if (!this.#watchers.has(id)) return; // closed meanwhile
    const loaded = this.#loaded.get(id) ?? new LoadedRounds();
    const isJoined = snapshots.joinsOn(this.live.value, snapshot);
    loaded.snapshot(snapshot.next_before ?? 1, isJoined, this.rounds(id).at(-1)?.number ?? 0);
    this.#loaded.set(id, loaded);
    this.live.value = snapshots.putConversation(this.live.value, snapshot);
  }

  /** The same array until a message of the conversation changes. */
  rounds(id: string): Round[] {
    const messages = this.live.tables.message;
    const known = this.#rounds.get(id);
    if (known?.messages === messages) return known.rounds;
    const shown = Object.values(messages).filter(snapshots.isShownIn(this.live.value, id));
    const rounds = roundsOf(shown, known?.rounds);
    this.#rounds.set(id, { messages, rounds });
    return rounds;
  }

  /** Whether a round was read, even when it was deleted since. Of a conversation that is not there yet all is known. */
  hasRead(id: string, round: number): boolean {
    return this.#loaded.get(id)?.has(round) ?? true;
  }

  /** Reads those rounds between two that are not here. Throws ApiError. */
  async loadRounds(id: string, first: number, last: number): Promise<void> {
    const loaded = this.#loaded.get(id);
    const missing = loaded?.missing(Math.max(1, first), last) ?? null;
    if (!loaded || missing === null) return;
    const limit = Math.min(ROUNDS_AT_ONCE, missing.last - missing.first + 1);
    const page = await api.readRounds(id, missing.last + 1, limit);
    this.live.value = snapshots.addRounds(this.live.value, id, page);
    loaded.page(missing.last - limit + 1, missing.last);
    if (missing.last - limit >= missing.first) await this.loadRounds(id, missing.first, missing.last - limit);
  }

  clear(): void {
    this.#rounds.clear();
    this.#loaded.clear();
  }
}
