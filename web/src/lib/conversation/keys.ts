/** The keys of a conversation, as commands: for reading, for the reply at hand, for writing. */
import ChevronsDown from '@lucide/svelte/icons/chevrons-down';
import Columns3 from '@lucide/svelte/icons/columns-3';
import PanelRight from '@lucide/svelte/icons/panel-right';
import PenLine from '@lucide/svelte/icons/pen-line';
import Square from '@lucide/svelte/icons/square';
import type { Command } from '$lib/commands/commands.svelte';
import type { Walking } from './walking';

export interface Hands {
  walking: Walking;
  canWrite: () => boolean;
  isAnswering: () => boolean;
  newest(): void;
  nextLayout(): void;
  write(): void;
  stopAll(): void;
  reply(): void;
  copy(): void;
  regenerate(): void;
  branch(): void;
  fold(): void;
  receipt(): void;
  best(): void;
  inspector(): void;
}

export function commandsOf(hands: Hands): Command[] {
  const { walking } = hands;
  const onReply = () => walking.current !== null;
  const mayChange = () => onReply() && hands.canWrite();
  const reading = { group: 'Reading', palette: false } as const;
  const reply = { group: 'On a reply', palette: false } as const;
  return [
    { ...reading, id: 'mind-next', title: 'Next mind', keys: 'ArrowRight', run: () => walking.mind(1) },
    { ...reading, id: 'mind-before', title: 'Previous mind', keys: 'ArrowLeft', run: () => walking.mind(-1) },
    { ...reading, id: 'minds', title: 'Mind by seat', keys: '1' },
    ...Array.from({ length: 8 }, (_, n) => ({
      ...reading,
      id: `mind-${n + 1}`,
      title: `Mind in seat ${n + 1}`,
      keys: String(n + 1),
      sheet: false,
      run: () => walking.seat(n + 1),
    })),
    { ...reading, id: 'round-next', title: 'Next round', keys: 'j', run: () => walking.round(1) },
    { ...reading, id: 'round-before', title: 'Previous round', keys: 'k', run: () => walking.round(-1) },
    { group: 'Reading', id: 'newest', title: 'Newest', keys: 'l', icon: ChevronsDown, run: hands.newest },
    {
      group: 'Reading',
      id: 'layout',
      title: 'Change layout',
      keys: 'v',
      icon: Columns3,
      run: hands.nextLayout,
    },
    {
      group: 'Reading',
      id: 'write',
      title: 'Write',
      keys: 'w',
      icon: PenLine,
      when: hands.canWrite,
      run: hands.write,
    },
    {
      ...reply,
      id: 'reply',
      title: 'Reply',
      keys: 'Enter',
      when: () => mayChange() && isOnCard(),
      run: hands.reply,
    },
    { ...reply, id: 'branch', title: 'Branch from here', keys: 'b', when: mayChange, run: hands.branch },
    { ...reply, id: 'copy', title: 'Copy', keys: 'c', when: onReply, run: hands.copy },
    {
      ...reply,
      id: 'regenerate',
      title: 'Regenerate',
      keys: 'shift+r',
      when: mayChange,
      run: hands.regenerate,
    },
    { ...reply, id: 'receipt', title: 'Context receipt', keys: 'r', when: onReply, run: hands.receipt },
    { ...reply, id: 'best', title: 'Best', keys: 's', when: mayChange, run: hands.best },
    { ...reply, id: 'fold', title: 'Fold traces', keys: 'f', when: onReply, run: hands.fold },
    {
      ...reply,
      id: 'leave',
      title: 'Back to the reply',
      keys: 'Escape',
      when: () => onReply() && !isOnCard(),
      run: () => walking.current?.focus(),
    },
    {
      group: 'Anywhere',
      id: 'inspector',
      title: 'Inspector',
      keys: ']',
      icon: PanelRight,
      run: hands.inspector,
    },
    {
      group: 'Writing',
      id: 'stop',
      title: 'Stop all replies',
      keys: 'mod+.',
      icon: Square,
      when: hands.isAnswering,
      run: hands.stopAll,
    },
    { group: 'Writing', id: 'send', title: 'Send', keys: 'Enter', palette: false },
    { group: 'Writing', id: 'address', title: 'Address one mind', keys: '@', palette: false },
    { group: 'Writing', id: 'edit-last', title: 'Edit the last question', keys: 'ArrowUp', palette: false },
    { group: 'Writing', id: 'line', title: 'New line', keys: 'shift+Enter', palette: false },
  ];
}

/** Enter on a button inside a reply is that button's. */
function isOnCard(): boolean {
  return document.activeElement?.matches('article[data-lane]') ?? false;
}
