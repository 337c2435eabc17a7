/** What is being written: the words, who is at the table, how they answer, and what each may read. */
import { Attaching } from '$lib/attachments/attaching.svelte';
import type { Message, Model, NewEstimate, Quote, Visibility, Voice } from '$lib/api/types';
import { modeNamed, type Mode } from '$lib/council/modes';
import { seated, SEATS } from '$lib/council/table';
import type { NewOutgoing } from './outbox';
import { keepUnsent, unsent } from './unsent';

/** As many as one question may bring along. */
const QUOTES = 10;

export interface Setting {
  keys: string[];
  mode: string;
  visibility: Visibility;
}

export class Composing {
  #text = $state('');
  keys = $state.raw<string[]>([]);
  mode = $state.raw<Mode>(modeNamed('parallel'));
  visibility = $state.raw<Visibility>('open');
  replyTo = $state.raw<Message | null>(null);
  quotes = $state.raw<Quote[]>([]);
  /** One mind alone, this once: the table waits. */
  aside = $state.raw<string | null>(null);
  /** Who brings it together; the first voice when nobody is chosen. */
  chair = $state.raw<Voice | null>(null);
  brief = $state('');
  isBlind = $state(false);
  readonly attaching: Attaching;

  /** Quick seats one voice; the others keep their chairs for the next round. */
  voices = $derived.by<Voice[]>(() =>
    seated(this.aside ? [this.aside] : this.keys.slice(0, this.mode.most), this.model),
  );
  isFull = $derived(this.keys.length >= SEATS);
  /** Not without a file that was meant to come along. */
  canSend = $derived.by(
    () =>
      this.#text.trim() !== '' &&
      this.voices.length >= (this.aside ? 1 : this.mode.least) &&
      !this.attaching.hasFailed,
  );

  constructor(
    /** The conversation, or "new" for one that does not exist yet. */
    private readonly place: string,
    private readonly model: (key: string) => Model | undefined,
    setting: Setting,
  ) {
    this.attaching = new Attaching(place);
    this.#text = unsent(place);
    this.use(setting);
  }

  get text(): string {
    return this.#text;
  }

  set text(text: string) {
    this.#text = text;
    keepUnsent(this.place, text);
  }

  use({ keys, mode, visibility }: Setting): void {
    this.keys = keys;
    this.mode = modeNamed(mode);
    this.visibility = visibility;
  }

  /** A second mind at a quick table makes it a shared one. */
  invite(key: string): void {
    this.aside = null;
    if (this.isFull) return;
    if (!this.mode.isShared && this.keys.length) {
      this.keys = this.keys.slice(0, this.mode.most);
      this.mode = modeNamed('parallel');
    }
    this.keys = [...this.keys, key];
  }

  dismiss(place: number): void {
    if (this.aside) return this.unreply();
    this.keys = this.keys.filter((_, n) => n !== place);
  }

  /** What goes out, as it stands. */
  said(at: number): Omit<NewOutgoing, 'id' | 'conversation_id' | 'project_id' | 'created_by'> {
    return {
      created_at: at,
      text: this.#text.trim(),
      mode: this.aside ? 'quick' : this.mode.id,
      table: this.voices,
      visibility: this.visibility,
      reply_to_id: this.replyTo?.id ?? null,
      attachments: this.attaching.ready,
      chair: this.mode.hasChair && !this.aside ? this.chair : null,
      brief: this.mode.hasChair && !this.aside ? this.brief.trim() : '',
      is_blind: this.isBlind && this.voices.length > 1,
      aside: this.aside !== null,
      quotes: this.quotes,
    };
  }

  /** The same, as a question about what it would take. */
  asked(projectId: string | null): NewEstimate {
    return {
      text: this.#text,
      voices: this.voices.map(({ model }) => ({ model })),
      conversation_id: this.place === 'new' ? null : this.place,
      project_id: projectId,
      visibility: this.visibility,
      reply_to_id: this.replyTo?.id ?? null,
      attachments: this.attaching.ready.map(({ id }) => id),
      mode: this.aside ? 'quick' : this.mode.id,
    };
  }

  /** What one mind said is put before another, which answers alone. */
  askAside(message: Message, key: string): void {
    this.replyTo = message;
    this.aside = key;
  }

  unreply(): void {
    this.replyTo = null;
    this.aside = null;
  }

  /** False when there are enough of them. */
  quote(messageId: string, text: string): boolean {
    const isThere = this.quotes.some((each) => each.message_id === messageId && each.text === text);
    if (isThere) return true;
    if (this.quotes.length >= QUOTES) return false;
    this.quotes = [...this.quotes, { message_id: messageId, text }];
    return true;
  }

  unquote(place: number): void {
    this.quotes = this.quotes.filter((_, n) => n !== place);
  }

  clear(): void {
    this.text = '';
    this.attaching.clear();
    this.unreply();
    this.quotes = [];
  }
}
