/** The menu items of a reply. */
import Copy from '@lucide/svelte/icons/copy';
import CornerUpLeft from '@lucide/svelte/icons/corner-up-left';
import GitBranch from '@lucide/svelte/icons/git-branch';
import MessageCircleQuestion from '@lucide/svelte/icons/message-circle-question-mark';
import Maximize from '@lucide/svelte/icons/maximize-2';
import ReceiptText from '@lucide/svelte/icons/receipt-text';
import RotateCw from '@lucide/svelte/icons/rotate-cw';
import Star from '@lucide/svelte/icons/star';
import Trash from '@lucide/svelte/icons/trash-2';
import type { Message } from '$lib/api/types';
import { inspector } from '$lib/panels/inspector.svelte';
import type { MenuItem } from '$lib/ui/menu';
import { vote } from '$lib/votes/requests';
import { type ReplyActions } from './replyActions';
import { copyText } from '$lib/ui/clipboard';
import type { BranchActions } from './branchActions.svelte';
import { wordsOf } from '$lib/lanes/replies';

export function againItems(
  branchActions: BranchActions,
  message: Message,
  anchor: () => HTMLElement | undefined,
): MenuItem[] {
  return [
    { label: 'Again', keys: 'shift+r', run: () => void branchActions.regenerate(message) },
    { label: 'More concise', run: () => void branchActions.regenerate(message, { style: 'concise' }) },
    { label: 'More detail', run: () => void branchActions.regenerate(message, { style: 'detailed' }) },
    'separator',
    {
      label: 'Another model…',
      run: () => {
        const beside = anchor();
        if (beside) branchActions.tryAnother(message, beside);
      },
    },
  ];
}

export function moreItems(
  branchActions: BranchActions,
  message: Message,
  anchor: () => HTMLElement | undefined,
): MenuItem[] {
  return [
    {
      label: 'Ask another voice about this',
      icon: MessageCircleQuestion,
      run: () => {
        const beside = anchor();
        if (beside) branchActions.askAnother(message, beside);
      },
    },
    'separator',
    { label: 'Delete this reply', icon: Trash, danger: true, run: () => void branchActions.remove(message) },
  ];
}

export function branchItem(branchActions: BranchActions, message: Message): MenuItem {
  return {
    label: 'Branch from here',
    icon: GitBranch,
    keys: 'b',
    run: () => void branchActions.branch(message),
  };
}

interface About {
  replyActions: ReplyActions;
  branchActions: BranchActions;
  message: Message;
  isBest: boolean;
  anchor: () => HTMLElement | undefined;
}

/** All of it in one list, for where there is no room for buttons. */
export function replyMenuItems({ replyActions, branchActions, message, isBest, anchor }: About): MenuItem[] {
  const layoutState: MenuItem[] = [
    { label: 'Copy', icon: Copy, keys: 'c', run: () => void copyText(wordsOf(message)) },
    { label: 'What was sent', icon: ReceiptText, keys: 'r', run: () => inspector.showReceipt(message.id) },
    {
      label: replyActions.aloneId === message.id ? 'Back to the round' : 'Open alone',
      icon: Maximize,
      keys: 'o',
      run: () => replyActions.openAlone(message),
    },
  ];
  if (!replyActions.canAct) return layoutState;
  const again = againItems(branchActions, message, anchor).map((item) =>
    item !== 'separator' && item.label === 'Again' ? { ...item, label: 'Regenerate', icon: RotateCw } : item,
  );
  return [
    { label: 'Reply', icon: CornerUpLeft, keys: 'enter', run: () => replyActions.replyTo(message) },
    branchItem(branchActions, message),
    {
      label: isBest ? 'No longer best' : 'Mark as best',
      icon: Star,
      keys: 's',
      run: () => void vote(message.id, isBest ? 'none' : 'best'),
    },
    ...layoutState,
    'separator',
    ...again,
    'separator',
    ...moreItems(branchActions, message, anchor),
  ];
}
