/**
 * The outbox: sends questions in order, each with the id of its turn, so sending one twice is harmless.
 *
 *   sending ─▶ sent (until the stream shows it)
 *      ├─▶ queued (no connection: sent by itself when it is back, also after the page was closed)
 *      └─▶ failed (refused: tried again or taken back by the person)
 */
import { ApiError } from '$lib/api/client';
import type { Attachment, NewTurn, Quote, SearchScope, Visibility, Voice, VoiceRef } from '$lib/api/types';
import { mindOf } from '$lib/council/minds';
import type { Seated } from '$lib/council/table';

export interface Outgoing {
  /** The id of the turn. */
  id: string;
  conversation_id: string;
  project_id: string;
  created_by: string;
  created_at: number;
  text: string;
  mode: string;
  table: Voice[];
  visibility: Visibility;
  reply_to_id: string | null;
  attachments: Attachment[];
  /** The voice that writes the synthesis, in modes that have a chair. */
  chair: Voice | null;
  /** Instructions for the synthesis, in the person's own words. */
  brief: string;
  /** True when names stay hidden until the person has voted. */
  is_blind: boolean;
  /** True when this table holds for a single question; the conversation keeps its own. */
  aside: boolean;
  quotes: Quote[];
  /** The scope of the search for this question; null for the project's default. */
  scope: SearchScope | null;
  state: 'sending' | 'queued' | 'sent' | 'failed';
  /** The reason it failed. */
  reason: string;
}

export type NewOutgoing = Omit<Outgoing, 'state' | 'reason'>;

/** Storage that keeps unsent questions when the page is closed. */
export interface OutboxStorage {
  load(): Outgoing[];
  keep(items: Outgoing[]): void;
}

export class Outbox {
  #items: Outgoing[];
  #busy = new Set<string>();

  constructor(
    private readonly post: (turn: NewTurn) => Promise<unknown>,
    private readonly shelf: OutboxStorage,
    private readonly changed: (items: Outgoing[]) => void,
  ) {
    this.#items = shelf.load().map((item) => ({
      ...item,
      ...kept(item),
      state: item.state === 'failed' ? 'failed' : 'queued',
    }));
    changed(this.#items);
  }

  send(item: NewOutgoing): void {
    this.#put([...this.#items, { ...item, state: 'sending', reason: '' }]);
    void this.#work(item.conversation_id);
  }

  /** The connection is back. */
  resume(): void {
    const waiting = this.#items.filter((item) => item.state === 'queued' || item.state === 'sending');
    for (const id of new Set(waiting.map((item) => item.conversation_id))) void this.#work(id);
  }

  retry(id: string): void {
    this.#change(id, { state: 'sending', reason: '' });
    const item = this.#items.find((item) => item.id === id);
    if (item) void this.#work(item.conversation_id);
  }

  /** Taken back by the person, or shown by the stream. */
  remove(id: string): void {
    if (this.#items.some((item) => item.id === id)) this.#put(this.#items.filter((item) => item.id !== id));
  }

  /** Sends questions in order: a later question never overtakes an earlier one. */
  async #work(conversationId: string): Promise<void> {
    if (this.#busy.has(conversationId)) return;
    this.#busy.add(conversationId);
    try {
      for (let item = this.#next(conversationId); item; item = this.#next(conversationId)) {
        if (!(await this.#deliver(item))) return;
      }
    } finally {
      this.#busy.delete(conversationId);
    }
  }

  #next(conversationId: string): Outgoing | undefined {
    const mine = this.#items.filter(
      (item) => item.conversation_id === conversationId && item.state !== 'sent',
    );
    return mine[0]?.state === 'failed' ? undefined : mine[0];
  }

  async #deliver(item: Outgoing): Promise<boolean> {
    this.#change(item.id, { state: 'sending' });
    try {
      await this.post(turnOf(item));
      this.#change(item.id, { state: 'sent' });
      return true;
    } catch (reason) {
      const isOffline = reason instanceof ApiError && (reason.status === 0 || reason.status === 401);
      this.#change(item.id, isOffline ? { state: 'queued' } : { state: 'failed', reason: said(reason) });
      return false;
    }
  }

  #change(id: string, change: Partial<Outgoing>): void {
    this.#put(this.#items.map((item) => (item.id === id ? { ...item, ...change } : item)));
  }

  #put(items: Outgoing[]): void {
    this.#items = items;
    this.shelf.keep(items.filter((item) => item.state !== 'sent'));
    this.changed(items);
  }
}

/** Fills in fields that a question stored by an earlier version of this page may lack. */
function kept(
  item: Partial<Outgoing>,
): Pick<Outgoing, 'attachments' | 'chair' | 'brief' | 'is_blind' | 'aside' | 'quotes' | 'scope'> {
  const { attachments = [], chair = null, brief = '', is_blind = false, aside = false } = item;
  const { quotes = [], scope = null } = item;
  return { attachments, chair, brief, is_blind, aside, quotes, scope };
}

function turnOf(item: Outgoing): NewTurn {
  const { id, conversation_id, project_id, text, mode, visibility, reply_to_id } = item;
  const voices = item.table.map(wanted);
  return {
    id,
    conversation_id,
    project_id,
    text,
    mode,
    voices,
    visibility,
    ...(reply_to_id !== null && { reply_to_id }),
    ...(item.attachments.length && { attachments: item.attachments.map((attachment) => attachment.id) }),
    ...(item.chair && { chair: wanted(item.chair) }),
    ...(item.brief && { brief: item.brief }),
    ...(item.is_blind && { is_blind: true }),
    ...(item.aside && { aside: true, lanes: item.table.map((each) => each.id) }),
    ...(item.quotes.length && { quotes: item.quotes }),
    ...(item.scope && { scope: item.scope }),
  } as NewTurn;
}

/** Returns the request for a voice: as it was seated; else its persona, which speaks through its own model. */
export function wanted(voice: Voice | Seated): VoiceRef {
  return 'wanted' in voice ? voice.wanted : mindOf(voice);
}

function said(reason: unknown): string {
  return reason instanceof Error ? reason.message : 'It could not be sent.';
}
