/** What can be done with a reply besides reading it, as the items of its menus. */
import GitBranch from '@lucide/svelte/icons/git-branch';
import MessageCircleQuestion from '@lucide/svelte/icons/message-circle-question-mark';
import Trash from '@lucide/svelte/icons/trash-2';
import type { Message } from '$lib/api/types';
import type { MenuItem } from '$lib/ui/menu';
import type { Growing } from './growing.svelte';

export function againItems(
  growing: Growing,
  message: Message,
  anchor: () => HTMLElement | undefined,
): MenuItem[] {
  return [
    { label: 'Again', keys: 'shift+r', run: () => void growing.regenerate(message) },
    { label: 'More concise', run: () => void growing.regenerate(message, { style: 'concise' }) },
    { label: 'More detail', run: () => void growing.regenerate(message, { style: 'detailed' }) },
    'separator',
    {
      label: 'Another model…',
      run: () => {
        const beside = anchor();
        if (beside) growing.tryAnother(message, beside);
      },
    },
  ];
}

export function moreItems(
  growing: Growing,
  message: Message,
  anchor: () => HTMLElement | undefined,
): MenuItem[] {
  return [
    {
      label: 'Ask another voice about this',
      icon: MessageCircleQuestion,
      run: () => {
        const beside = anchor();
        if (beside) growing.askAnother(message, beside);
      },
    },
    'separator',
    { label: 'Delete this reply', icon: Trash, danger: true, run: () => void growing.remove(message) },
  ];
}

export function branchItem(growing: Growing, message: Message): MenuItem {
  return { label: 'Branch from here', icon: GitBranch, keys: 'b', run: () => void growing.branch(message) };
}
