/** The state of the composer: text, voices, mode, visibility, quotes, attachments. */
import { AttachmentQueue } from '$lib/attachments/attachmentQueue.svelte';
import type { Effort, Message, NewEstimate, Quote, SearchScope, Visibility, Voice } from '$lib/api/types';
import { thinking } from '$lib/council/efforts';
import { addressed } from '$lib/council/mentions';
import { ofPersona, type Mind } from '$lib/council/minds';
import { modeNamed, tooFew, type Mode } from '$lib/council/modes';
import type { RoundSettings } from '$lib/council/initialSetting';
import { canCome, NOBODY, seated, SEATS, type Invitable, type Held, type Seated } from '$lib/council/table';
import type { NewOutgoing } from './outbox';
import { saveUnsentText, unsentText } from './unsentText';

/** The number of quotes a question may have. */
const QUOTES = 10;

export class ComposerState {
  #text = $state('');
  minds = $state.raw<Mind[]>([]);
  mode = $state.raw<Mode>(modeNamed('parallel'));
  visibility = $state.raw<Visibility>('open');
  replyTo = $state.raw<Message | null>(null);
  quotes = $state.raw<Quote[]>([]);
  /** A single voice asked alone, for this question; the table stays as it is. */
  aside = $state.raw<Mind | null>(null);
  /** The chair, which writes the synthesis; null means the first voice. */
  chair = $state.raw<Mind | null>(null);
  brief = $state('');
  /** True while the list of saved tables is open. */
  isChoosingTable = $state(false);
  isBlind = $state(false);
  /** The scope of the search; null for the project's default. */
  scope = $state.raw<SearchScope | null>(null);
  readonly attachmentQueue: AttachmentQueue;

  /** Quick seats one voice; the others keep their chairs for the next round. */
  voices = $derived.by<Seated[]>(() =>
    seated(this.aside ? [this.aside] : this.minds.slice(0, this.mode.most), this.invitable, [], this.held()),
  );
  isFull = $derived(this.minds.length >= SEATS);
  /** Whom one can address: those at the table, and every persona that could come. */
  known = $derived.by<Seated[]>(() => {
    const others = this.invitable.personas.map(({ id }) => ofPersona(id));
    const isAbsent = ({ persona_id }: Mind) => this.voices.every((voice) => voice.persona_id !== persona_id);
    const beside = others.filter((other) => isAbsent(other) && canCome(other, this.invitable));
    return [
      ...this.voices,
      ...beside.flatMap((each) => seated([each], this.invitable, this.voices, this.held())),
    ];
  });
  /** Voices mentioned with an @; they alone are asked. */
  addressed = $derived.by<Seated[]>(() => addressed(this.#text, this.known));
  /** The voices that will answer. */
  asking = $derived(this.addressed.length ? this.addressed : this.voices);
  isAside = $derived(this.aside !== null || this.addressed.length > 0);
  /** The mode in which they will answer. */
  way = $derived(this.isAside ? modeNamed(this.asking.length > 1 ? 'parallel' : 'quick') : this.mode);
  /** The voice in the chair: a voice of the table, or another; null in modes without a chair. */
  presiding = $derived.by<Seated | null>(() => {
    if (!this.way.hasChair || !this.voices.length) return null;
    const [beside] = this.chair ? seated([this.chair], this.invitable, this.voices, this.held()) : [];
    const isChair = (each: Voice) => each.persona_id === beside?.persona_id && each.model === beside?.model;
    return beside ? (this.voices.find(isChair) ?? beside) : this.voices[0]!;
  });
  /** The reason the question cannot be sent; empty when it can. */
  problem = $derived.by<string>(() => {
    const absent = this.asking.find((each) => !canCome(each.wanted, this.invitable));
    if (absent && this.invitable.models.length) return absentSentence(absent);
    if (this.asking.length >= this.way.least) return '';
    if (!this.asking.length) return 'No model is chosen. Add one.';
    return tooFew(this.way);
  });
  /** True when the message can be sent; a failed attachment prevents it. */
  canSend = $derived.by(
    () => this.#text.trim() !== '' && this.problem === '' && !this.attachmentQueue.hasFailed,
  );

  constructor(
    /** The conversation, or "new" for one that does not exist yet. */
    private readonly place: string,
    private readonly invitable: Invitable,
    setting: RoundSettings,
    /** Returns the seats held in the conversation. */
    private readonly held: () => Held = () => NOBODY,
  ) {
    this.attachmentQueue = new AttachmentQueue(place);
    this.#text = unsentText(place);
    this.use(setting);
  }

  get text(): string {
    return this.#text;
  }

  set text(text: string) {
    this.#text = text;
    saveUnsentText(this.place, text);
  }

  use({ minds, mode, visibility, chair, brief }: RoundSettings): void {
    this.minds = minds;
    this.mode = modeNamed(mode);
    this.visibility = visibility;
    this.chair = chair;
    this.brief = brief;
  }

  get setting(): RoundSettings {
    const { minds, mode, visibility, chair, brief } = this;
    return { minds, mode: mode.id, visibility, chair, brief };
  }

  /** Adds a voice; a second voice at a quick table makes it a shared table. */
  invite(mind: Mind): void {
    this.aside = null;
    if (this.isFull) return;
    if (!this.mode.isShared && this.minds.length) {
      this.minds = this.minds.slice(0, this.mode.most);
      this.mode = modeNamed('parallel');
    }
    this.minds = [...this.minds, mind];
  }

  dismiss(place: number): void {
    if (this.aside) return this.unreply();
    this.minds = this.minds.filter((_, n) => n !== place);
  }

  /** Sets the effort of the voice in this place; null leaves it to the model. */
  think(place: number, effort: Effort | null): void {
    if (this.aside) this.aside = { ...this.aside, effort };
    else this.minds = thinking(this.minds, place, effort);
  }

  /** Returns the turn to send, from the current state. */
  newTurn(at: number): Omit<NewOutgoing, 'id' | 'conversation_id' | 'project_id' | 'created_by'> {
    return {
      created_at: at,
      text: this.#text.trim(),
      mode: this.way.id,
      table: this.asking,
      visibility: this.visibility,
      reply_to_id: this.replyTo?.id ?? null,
      attachments: this.attachmentQueue.ready,
      chair: this.chair && this.presiding,
      brief: this.way.hasChair ? this.brief.trim() : '',
      is_blind: this.isBlind && this.way.id === 'parallel' && this.asking.length > 1,
      aside: this.isAside,
      quotes: this.quotes,
      scope: this.scope,
    };
  }

  /** The same, as a question about what it would take. */
  estimateRequest(projectId: string | null): NewEstimate {
    return {
      text: this.#text,
      voices: this.asking.map((each) => each.wanted),
      conversation_id: this.place === 'new' ? null : this.place,
      project_id: projectId,
      visibility: this.visibility,
      reply_to_id: this.replyTo?.id ?? null,
      quotes: this.quotes,
      attachments: this.attachmentQueue.ready.map(({ id }) => id),
      mode: this.way.id,
      chair: this.presiding?.wanted ?? null,
      ...(this.scope && { scope: this.scope }),
      ...(this.isAside && { aside: true, lanes: this.asking.map((each) => each.id) }),
    };
  }

  /** Asks another voice about a message; that voice answers alone. */
  askAside(message: Message, who: Mind): void {
    this.replyTo = message;
    this.aside = who;
  }

  unreply(): void {
    this.replyTo = null;
    this.aside = null;
  }

  /** False when there are enough of them. */
  quote(messageId: string, text: string): boolean {
    const isThere = this.quotes.some((quote) => quote.message_id === messageId && quote.text === text);
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
    this.attachmentQueue.clear();
    this.unreply();
    this.quotes = [];
  }
}

function absentSentence({ persona_id, persona_version, name }: Seated): string {
  return persona_id !== null && persona_version === null
    ? 'A persona chosen here no longer exists. Remove it to continue.'
    : `${name} cannot answer now. Remove it, or see Models for what is missing.`;
}
