/** Loads the branch tree of a conversation: when it has branches, and again when something in it changes. */
import { untrack } from 'svelte';
import type { Conversation, Tree } from '$lib/api/types';
import { familyOf } from '$lib/conversations/branchFamily';
import { store } from '$lib/live/store.svelte';
import { readTree } from './requests';

type Siblings = Tree['siblings'][number];
type Versions = Tree['versions'][number];

/** A longer line is drawn as a tree only when it is known to branch, or when someone asks. */
const SHORT = 200;

export class BranchTree {
  tree = $state.raw<Tree | null>(null);
  /** Why it could not be read. */
  problem = $state.raw<string | null>(null);
  #asked = 0;

  /** All that is known of it, also before it was read. */
  family = $derived.by<Conversation[]>(() => familyOf(store.conversations, this.id()));

  #standing = $derived.by(() => {
    const each = this.family.map(
      ({ id, round_count, is_answering }) => `${id} ${round_count} ${is_answering}`,
    );
    return [this.id(), ...each].join(', ');
  });

  /** True when the tree should be read: a long list of conversations is not loaded whole, so unknown branches may exist. */
  #isWorthReading = $derived.by(() => {
    const conversation = store.conversation(this.id());
    if (!conversation || store.goneReason(conversation.id) !== null) return false;
    return (
      this.isWanted() ||
      conversation.parent_id !== null ||
      this.family.length > 1 ||
      (conversation.round_count <= SHORT && store.hasMoreConversations(conversation.project_id))
    );
  });

  /** Call this in a component's script; with `isWanted` the tree is read even when no branch is known. */
  constructor(
    private readonly id: () => string,
    private readonly isWanted: () => boolean = () => false,
  ) {
    $effect(() => {
      void this.#standing;
      if (this.#isWorthReading) untrack(() => void this.read());
    });
  }

  async read(): Promise<void> {
    const asked = ++this.#asked;
    const before = store.conversations;
    try {
      const tree = await readTree(this.id());
      if (asked !== this.#asked) return;
      this.tree = tree;
      this.problem = null;
      // A conversation known before and missing now was deleted while this answer was on its way.
      const found = tree.nodes.map((node) => node.conversation);
      store.addConversations(found.filter(({ id }) => id in store.conversations || !(id in before)));
    } catch (reason) {
      if (asked === this.#asked) this.problem = reason instanceof Error ? reason.message : '';
    }
  }

  /** The other versions of a round's question. */
  siblings(round: number): Siblings | null {
    return this.tree?.siblings.find((sibling) => sibling.round_number === round) ?? null;
  }

  /** A reply as other branches have it. */
  versions(messageId: string): Versions | null {
    return this.tree?.versions.find((version) => version.message_ids[version.index] === messageId) ?? null;
  }
}
