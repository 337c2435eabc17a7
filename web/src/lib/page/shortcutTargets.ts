/** The targets of a conversation's shortcuts: the reply with focus, the feed, the composer, the branches. */
import { goto } from '$app/navigation';
import type { ComposerState } from '$lib/composer/composerState.svelte';
import type { Message } from '$lib/api/types';
import type { KeyboardNavigation } from '$lib/feed/keyboardNavigation';
import { LAYOUTS, type LayoutState } from '$lib/lanes/layoutState.svelte';
import { store } from '$lib/live/store.svelte';
import { inspector } from '$lib/panels/inspector.svelte';
import type { BranchActions } from '$lib/reply/branchActions.svelte';
import { stopTurns } from '$lib/reply/replyActions';
import { routes } from '$lib/routes';
import { announce } from '$lib/ui/announce.svelte';
import { copyText } from '$lib/ui/clipboard';
import { bestOf, votesOn } from '$lib/votes/votes';
import { vote } from '$lib/votes/requests';
import type { ConversationData } from './conversationData.svelte';
import type { FocusedReply } from './focusedReply.svelte';
import type { ShortcutTargets } from './shortcuts';
import type { SingleReplyState } from './singleReply.svelte';

export interface PageParts {
  data: ConversationData;
  composer: ComposerState;
  layoutState: LayoutState;
  navigation: KeyboardNavigation;
  focused: FocusedReply;
  single: SingleReplyState;
  branchActions: BranchActions;
  canWrite: () => boolean;
  /** Focus goes to the field for a message. */
  write: () => void;
  replyTo: (message: Message | null) => void;
  showEnd: () => void;
  /** The address of a comparison with another branch; null when there is none. */
  comparison: () => string | null;
}

export function shortcutTargets(page: PageParts): ShortcutTargets {
  const { data, composer, layoutState, navigation, focused, branchActions } = page;
  const comparison = page.comparison();
  const onCurrent = (run: (message: Message) => unknown) => () => {
    const message = focused.current;
    if (message) void run(message);
  };
  return {
    navigation,
    canWrite: page.canWrite,
    isAnswering: () => data.running.length > 0,
    newest: page.showEnd,
    nextLayout: () => nextLayout(layoutState),
    write: page.write,
    stopAll: () => stopAll(data),
    reply: () => page.replyTo(focused.current),
    copy: () => void copyText(focused.current?.content ?? ''),
    regenerate: onCurrent((message) => branchActions.regenerate(message)),
    branch: onCurrent((message) => branchActions.branch(message)),
    alone: onCurrent((message) => page.single.open(message)),
    fold: () => foldThinking(page),
    receipt: onCurrent(showReceipt),
    best: onCurrent((message) => markBest(data, message)),
    inspector: () => toggleInspector(focused),
    map: () => void goto(routes.map(data.id)),
    compare: comparison === null ? null : () => void goto(comparison),
    mode: composer.mode.id,
    changeMode(mode) {
      composer.mode = mode;
      page.write();
    },
    whose: focused.last?.voice?.name ?? null,
    branchFromIt: () => void (focused.last && branchActions.branch(focused.last)),
    showIts: () => showReceipt(focused.last),
  };
}

export function stopAll(data: ConversationData): void {
  void stopTurns(data.running.map(({ id }) => id));
}

export function toggleInspector(focused: FocusedReply): void {
  if (inspector.shown) inspector.close();
  else showReceipt(focused.last);
}

function showReceipt(message: Message | null): void {
  if (message) inspector.showReceipt(message.id);
}

function nextLayout(layoutState: LayoutState): void {
  const next = layoutState.nextLayout();
  announce(LAYOUTS.find(({ value }) => value === next)!.label);
}

function foldThinking({ navigation, layoutState }: PageParts): void {
  const { round, lane } = navigation.current?.dataset ?? {};
  if (round && lane) layoutState.fold(round, lane);
}

/** Marks a reply as the best of its round, or takes the mark away. */
function markBest(data: ConversationData, message: Message): Promise<void> {
  const row = data.rows.find(({ round }) => round.number === message.round_number);
  const isBest = row ? bestOf(votesOn(row.round, store.votes)) === message.id : false;
  return vote(message.id, isBest ? 'none' : 'best');
}
