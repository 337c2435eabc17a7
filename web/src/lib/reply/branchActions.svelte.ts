/** Actions that create a branch or delete something: edit, regenerate, branch, delete. Shared by cards, menus and shortcuts. */
import { getContext, setContext } from 'svelte';
import { goto } from '$app/navigation';
import type { Draft, Message, Turn } from '$lib/api/types';
import { messageDeletionText } from '$lib/conversations/deletionText';
import type { Mind } from '$lib/council/minds';
import { store } from '$lib/live/store.svelte';
import { routes } from '$lib/routes';
import type { BranchTree } from '$lib/tree/branchTree.svelte';
import * as requests from '$lib/tree/requests';
import { announce } from '$lib/ui/announce.svelte';
import { confirm } from '$lib/ui/confirm.svelte';
import { toast } from '$lib/ui/toasts.svelte';
import { viewport } from '$lib/ui/viewport.svelte';
import { withErrorToast } from '$lib/ui/errorToast';
import type { ComposerState } from '$lib/composer/composerState.svelte';
import { wanted } from '$lib/composer/outbox';
import { stop } from './requests';

/** An open picker in which a person chooses a voice for an action. */
export interface Picking {
  title: string;
  anchor: HTMLElement;
  /** Personas may be chosen, too. */
  isOpenToAll: boolean;
  /** A model that is not offered. */
  without?: string | undefined;
  run: (mind: Mind) => void;
}

/** The round whose versions are walked through: focus goes along to the branch they lead to. */
let walked: number | null = null;

export class BranchActions {
  /** The question that is being asked differently. */
  editing = $state.raw<string | null>(null);
  picking = $state.raw<Picking | null>(null);
  isPicking = $state(false);

  constructor(
    readonly id: string,
    readonly branchTree: BranchTree,
    private readonly composer: ComposerState,
    private readonly write: () => void,
  ) {}

  /** Asks a question again in other words, with the same table, in a branch beside this one. */
  async edit(question: Message, asked: Turn | undefined, text: string): Promise<void> {
    const here = store.conversation(this.id);
    const table = asked ?? here;
    // A blind round does not tell who sat at its table, so the conversation's table is used.
    const seated = asked?.is_blind ? here : table;
    if (!table || !seated) return;
    const work = requests.edit(this.id, question.round_number, {
      text,
      voices: seated.table.map(wanted),
      mode: table.mode,
      visibility: table.visibility,
      reply_to_id: question.reply_to_id,
      attachments: question.attachments.map((attachment) => attachment.id),
      quotes: question.quotes,
      ...(table.scope && { scope: table.scope }),
      ...(table.chair && { chair: wanted(table.chair) }),
      ...(asked && { brief: asked.brief, is_blind: asked.table.some((each) => each.letter !== '') }),
    });
    await withErrorToast('The question was not asked.', this.#goTo(work, question.round_number));
  }

  /** The question stays as it was, and one is back where one writes. */
  leave(): void {
    this.editing = null;
    if (!viewport.isPhone) this.write();
  }

  async #goTo(work: ReturnType<typeof requests.edit>, round: number): Promise<void> {
    const { conversation } = await work;
    this.editing = null;
    if (conversation.id === this.id) return;
    store.addConversations([conversation]);
    await goto(routes.round(conversation.id, round));
    announce(`Round ${round} continues in a branch`);
  }

  /** The question or the reply as another branch has it. */
  async show(conversationId: string, round: number): Promise<void> {
    walked = round;
    await goto(routes.round(conversationId, round), { keepFocus: true });
  }

  /** Whether one came here walking through the versions of a round; true once. */
  arrivedAt(round: number): boolean {
    const isHere = walked === round;
    if (isHere) walked = null;
    return isHere;
  }

  /** Makes a branch from a single reply, or from a question with all its replies. */
  branch(message: Message): Promise<void> {
    const { round_number: round } = message;
    const made = async () => {
      const branch = await requests.branch(this.id, round, message.voice ? message.id : undefined);
      store.addConversations([branch]);
      await goto(routes.conversation(branch.id), { state: { isWriting: true } });
      announce(`New branch from round ${round}`);
    };
    return withErrorToast('The branch was not created.', made());
  }

  regenerate(message: Message, how: requests.How = {}): Promise<void> {
    const work = requests.regenerate(message.id, this.id, how);
    return withErrorToast('The reply was not regenerated.', this.#goTo(work, message.round_number));
  }

  /** A reply with its versions, or a question with its round. */
  async remove(message: Message): Promise<void> {
    const isQuestion = message.voice === null;
    const gone = async () => {
      const removal = await requests.removalOfMessage(message.id);
      const isSure = await confirm({
        title: isQuestion
          ? `Delete round ${message.round_number}?`
          : `Delete the reply of ${message.voice?.name}?`,
        body: messageDeletionText(isQuestion, removal),
        action: isQuestion ? 'Delete round' : 'Delete reply',
      });
      if (!isSure) return;
      await requests.removeMessage(message.id);
      if (this.branchTree.tree) void this.branchTree.read();
      toast({ text: isQuestion ? `Round ${message.round_number} deleted` : 'Reply deleted' });
    };
    await withErrorToast('It was not deleted.', gone());
  }

  /** Asks another voice about a reply; the table stays as it is. */
  askAnother(message: Message, anchor: HTMLElement): void {
    this.#pick('Ask another voice about this', anchor, true, (mind) => {
      this.composer.askAside(message, mind);
      this.write();
    });
  }

  tryAnother(message: Message, anchor: HTMLElement): void {
    const run = ({ model }: Mind) => {
      if (model !== null) void this.regenerate(message, { model });
    };
    this.#pick('Use another model', anchor, false, run, message.voice?.model);
  }

  /** A voice that waits for its provider is stopped, and another model takes its place. */
  replaceWaiting(draft: Draft, anchor: HTMLElement): void {
    const run = ({ model }: Mind) => {
      if (model !== null) void withErrorToast('The model was not changed.', this.#replace(draft, model));
    };
    this.#pick('Use another model', anchor, false, run, draft.voice.model);
  }

  async #replace(draft: Draft, model: string): Promise<void> {
    await stop(draft.turn_id, draft.id);
    await this.regenerate(await stored(draft.id), { model });
  }

  #pick(
    title: string,
    anchor: HTMLElement,
    isOpenToAll: boolean,
    run: Picking['run'],
    without?: string,
  ): void {
    this.picking = { title, anchor, isOpenToAll, run, without };
    this.isPicking = true;
  }

  quote(messageId: string, text: string): void {
    if (this.composer.quote(messageId, text)) this.write();
    else toast({ text: 'A question can have up to ten quotes.', tone: 'error' });
  }
}

/** A draft that was stopped, once it is a message. */
function stored(id: string): Promise<Message> {
  return new Promise((resolve) => {
    const end = $effect.root(() => {
      $effect(() => {
        const message = store.messages[id];
        if (!message) return;
        resolve(message);
        queueMicrotask(() => end());
      });
    });
  });
}

const KEY = Symbol('branch actions');

export function provideBranchActions(branchActions: BranchActions): BranchActions {
  return setContext(KEY, branchActions);
}

export function useBranchActions(): BranchActions {
  return getContext<BranchActions>(KEY);
}
