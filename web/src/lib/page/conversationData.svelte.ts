/** The data of a conversation's page: its rounds, then the questions that wait to be sent, and the running replies. */
import type { Message } from '$lib/api/types';
import { outboxStore } from '$lib/composer/outboxStore.svelte';
import type { ScrollTarget } from '$lib/feed/loadedRange';
import { lanesOf, type Lane } from '$lib/lanes/lanes';
import { store } from '$lib/live/store.svelte';
import { grouped, rowsOf, type Row } from '$lib/round/rows';

export class ConversationData {
  readonly rounds = $derived.by(() => store.rounds(this.id));
  readonly turns = $derived.by(() => store.turnsOf(this.id));
  /** Questions of this browser that have not arrived yet. */
  readonly outgoing = $derived.by(() => outboxStore.of(this.id, store.me?.id));
  readonly rows = $derived.by(() => rowsOf(this.rounds, this.turns, this.outgoing));
  readonly drafts = $derived.by(() => grouped(store.draftsOf(this.id)));
  readonly running = $derived.by(() =>
    this.turns.filter(({ state }) => state === 'queued' || state === 'running'),
  );

  constructor(readonly id: string) {
    $effect(() => this.#forgetArrived());
  }

  get lastRound(): number {
    return this.rows.at(-1)?.round.number ?? 0;
  }

  isOutgoing(turnId: string): boolean {
    return this.outgoing.some((item) => item.id === turnId);
  }

  /** The row and lane of a reply; null until its round is here. */
  find({ round, replyId }: ScrollTarget): { row: Row; lane: Lane } | null {
    const row = this.rows.find((candidate) => candidate.round.number === round);
    if (!row) return null;
    const lanes = lanesOf(row.round, row.turns, this.drafts.get(round) ?? []);
    const lane = lanes.find(({ versions }) => versions.some(({ id }) => id === replyId));
    return lane ? { row, lane } : null;
  }

  /** The newest version of a reply that is a message, by the name of its row and the key of its lane. */
  newest(rowName: string | undefined, laneKey: string | undefined): Message | null {
    const row = this.rows.find(({ name }) => name === rowName);
    const lane = row && lanesOf(row.round, [], []).find(({ key }) => key === laneKey);
    const version = lane?.versions.at(-1);
    return version?.kind === 'message' ? version.message : null;
  }

  /** The question of the last row, unless it waits to be sent. */
  get lastQuestion(): Message | undefined {
    const row = this.rows.at(-1);
    return row?.pending ? undefined : row?.round.messages.find(({ role }) => role === 'user');
  }

  /** Removes questions from the outbox once the stream has brought them. */
  #forgetArrived(): void {
    const arrived = this.rounds.flatMap(({ messages }) => messages.map(({ turn_id }) => turn_id));
    for (const item of this.outgoing) if (arrived.includes(item.id)) outboxStore.remove(item.id);
  }
}
