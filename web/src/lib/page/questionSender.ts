/** Sends questions from the page of a conversation, and takes back those that were not sent. */
import { goto } from '$app/navigation';
import type { Message, Voice } from '$lib/api/types';
import { ulid } from '$lib/api/ulid';
import { saveAttachment } from '$lib/attachments/savedAttachments';
import type { ComposerState } from '$lib/composer/composerState.svelte';
import type { Outgoing } from '$lib/composer/outbox';
import { outboxStore } from '$lib/composer/outboxStore.svelte';
import { saveUnsentText } from '$lib/composer/unsentText';
import { store } from '$lib/live/store.svelte';
import { routes } from '$lib/routes';
import type { ConversationData } from './conversationData.svelte';

const REVISE = 'Please revise your answer in the light of this second opinion.';

export class QuestionSender {
  constructor(
    private readonly data: ConversationData,
    private readonly composer: ComposerState,
    /** Brings a question that was just sent into view. */
    private readonly show: (turnId: string) => Promise<void> | undefined,
  ) {}

  async send(): Promise<void> {
    const project = this.#conversation?.project_id ?? store.project?.id;
    if (!store.me || !project) return;
    const sent = this.#newTurn(project, store.me.id);
    outboxStore.send({ ...sent, ...this.composer.newTurn(Date.now()) });
    this.composer.clear();
    await this.show(sent.id);
  }

  /** Asks one voice again with a second opinion before it. The table stays as it was set. */
  async revise(critique: Message, answerer: Voice): Promise<void> {
    const project = this.#conversation?.project_id;
    if (!store.me || !project) return;
    const sent = this.#newTurn(project, store.me.id);
    outboxStore.send({
      ...sent,
      created_at: Date.now(),
      text: REVISE,
      mode: 'quick',
      table: [answerer],
      visibility: this.composer.visibility,
      reply_to_id: critique.id,
      attachments: [],
      chair: null,
      brief: '',
      is_blind: false,
      aside: true,
      quotes: [],
      scope: this.composer.scope,
    });
    await this.show(sent.id);
  }

  /** The text goes back to the field; without its first question there is no conversation. */
  async takeBack(item: Outgoing): Promise<void> {
    if (!this.#conversation && this.data.rows.length === 1) await this.#backToNew(item);
    else if (!this.composer.text) {
      this.composer.text = item.text;
      this.composer.attachmentQueue.restore(item.project_id, item.attachments);
    }
    outboxStore.remove(item.id);
  }

  async #backToNew(item: Outgoing): Promise<void> {
    saveUnsentText('new', item.text);
    for (const attachment of item.attachments) saveAttachment('new', item.project_id, attachment);
    await goto(routes.newConversation);
  }

  #newTurn(project: string, me: string) {
    return { id: ulid(), conversation_id: this.data.id, project_id: project, created_by: me };
  }

  get #conversation() {
    return store.conversation(this.data.id);
  }
}
