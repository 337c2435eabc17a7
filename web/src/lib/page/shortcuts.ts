/** The shortcuts of a conversation as commands: for reading, for the reply with focus, for writing. */
import GitBranch from '@lucide/svelte/icons/git-branch';
import GitCompare from '@lucide/svelte/icons/git-compare';
import Network from '@lucide/svelte/icons/network';
import ReceiptText from '@lucide/svelte/icons/receipt-text';
import UsersRound from '@lucide/svelte/icons/users-round';
import ChevronsDown from '@lucide/svelte/icons/chevrons-down';
import Columns3 from '@lucide/svelte/icons/columns-3';
import PanelRight from '@lucide/svelte/icons/panel-right';
import PenLine from '@lucide/svelte/icons/pen-line';
import Square from '@lucide/svelte/icons/square';
import type { Command } from '$lib/commands/commands.svelte';
import { MODES, type Mode } from '$lib/council/modes';
import type { KeyboardNavigation } from '$lib/feed/keyboardNavigation';

export interface ShortcutTargets {
  navigation: KeyboardNavigation;
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
  alone(): void;
  fold(): void;
  receipt(): void;
  best(): void;
  inspector(): void;
  map(): void;
  /** Opens the comparison; null when there is no other branch. */
  compare: (() => void) | null;
  mode: string;
  changeMode(mode: Mode): void;
  /** The name of the voice whose reply last had focus. */
  whose: string | null;
  branchFromIt(): void;
  showIts(): void;
}

export function commandsOf(targets: ShortcutTargets): Command[] {
  const { navigation } = targets;
  const onReply = () => navigation.current !== null;
  const mayChange = () => onReply() && targets.canWrite();
  const reading = { group: 'Reading', palette: false } as const;
  const reply = { group: 'On a reply', palette: false } as const;
  return [
    {
      ...reading,
      id: 'mind-next',
      title: 'Next reply',
      keys: 'ArrowRight',
      run: () => navigation.mind(1),
    },
    {
      ...reading,
      id: 'mind-before',
      title: 'Previous reply',
      keys: 'ArrowLeft',
      run: () => navigation.mind(-1),
    },
    { ...reading, id: 'minds', title: 'Reply by number', keys: '1' },
    ...Array.from({ length: 8 }, (_, n) => ({
      ...reading,
      id: `mind-${n + 1}`,
      title: `Reply ${n + 1}`,
      keys: String(n + 1),
      sheet: false,
      run: () => navigation.seat(n + 1),
    })),
    { ...reading, id: 'round-next', title: 'Next round', keys: 'j', run: () => navigation.round(1) },
    {
      ...reading,
      id: 'round-before',
      title: 'Previous round',
      keys: 'k',
      run: () => navigation.round(-1),
    },
    {
      group: 'Reading',
      id: 'newest',
      title: 'Newest round',
      keys: 'l',
      icon: ChevronsDown,
      run: targets.newest,
    },
    {
      group: 'Reading',
      id: 'layout',
      title: 'Change layout',
      keys: 'v',
      icon: Columns3,
      run: targets.nextLayout,
    },
    {
      group: 'Reading',
      id: 'write',
      title: 'Write a message',
      keys: 'w',
      icon: PenLine,
      when: targets.canWrite,
      run: targets.write,
    },
    {
      ...reply,
      id: 'reply',
      title: 'Reply',
      keys: 'Enter',
      when: () => mayChange() && isOnCard(),
      run: targets.reply,
    },
    { ...reply, id: 'branch', title: 'Branch from here', keys: 'b', when: mayChange, run: targets.branch },
    { ...reply, id: 'copy', title: 'Copy', keys: 'c', when: onReply, run: targets.copy },
    {
      ...reply,
      id: 'regenerate',
      title: 'Regenerate',
      keys: 'shift+r',
      when: mayChange,
      run: targets.regenerate,
    },
    { ...reply, id: 'receipt', title: 'What was sent', keys: 'r', when: onReply, run: targets.receipt },
    { ...reply, id: 'best', title: 'Mark as best', keys: 's', when: mayChange, run: targets.best },
    { ...reply, id: 'alone', title: 'Open alone', keys: 'o', when: onReply, run: targets.alone },
    { ...reply, id: 'fold', title: 'Show or hide thinking', keys: 'f', when: onReply, run: targets.fold },
    {
      ...reply,
      id: 'leave',
      title: 'Back to the reply',
      keys: 'Escape',
      when: () => onReply() && !isOnCard(),
      run: () => navigation.current?.focus(),
    },
    {
      group: 'Anywhere',
      id: 'inspector',
      title: 'Side panel',
      keys: ']',
      icon: PanelRight,
      run: targets.inspector,
    },
    {
      group: 'Writing',
      id: 'stop',
      title: 'Stop all replies',
      keys: 'mod+.',
      icon: Square,
      when: targets.isAnswering,
      run: targets.stopAll,
    },
    ...byName(targets),
    { group: 'Writing', id: 'send', title: 'Send', keys: 'Enter', palette: false },
    { group: 'Writing', id: 'address', title: 'Ask one voice', keys: '@', palette: false },
    { group: 'Writing', id: 'bring', title: 'Add a file', keys: '#', palette: false },
    { group: 'Writing', id: 'edit-last', title: 'Edit the last question', keys: 'ArrowUp', palette: false },
    { group: 'Writing', id: 'line', title: 'New line', keys: 'shift+Enter', palette: false },
  ];
}

/** Lists commands for the palette: those without a key, and those whose key needs a reply with focus. */
function byName(targets: ShortcutTargets): Command[] {
  const hidden = { sheet: false } as const;
  const { compare, whose } = targets;
  return [
    {
      ...hidden,
      group: 'On a reply',
      id: 'branch-from-it',
      title: `Branch from ${whose ?? 'the reply'}’s reply`,
      icon: GitBranch,
      when: () => whose !== null && targets.canWrite(),
      run: targets.branchFromIt,
    },
    {
      ...hidden,
      group: 'On a reply',
      id: 'receipt-of-it',
      title: `What was sent for ${whose ?? 'the reply'}’s reply`,
      icon: ReceiptText,
      when: () => whose !== null,
      run: targets.showIts,
    },
    { ...hidden, group: 'Reading', id: 'map', title: 'Branch map', icon: Network, run: targets.map },
    ...(compare
      ? [
          {
            ...hidden,
            group: 'Reading' as const,
            id: 'compare',
            title: 'Compare branches',
            icon: GitCompare,
            run: compare,
          },
        ]
      : []),
    ...MODES.filter((mode) => mode.id !== targets.mode).map((mode) => ({
      ...hidden,
      group: 'Writing' as const,
      id: `mode-${mode.id}`,
      title: `Switch to ${mode.name}`,
      icon: UsersRound,
      when: targets.canWrite,
      run: () => targets.changeMode(mode),
    })),
  ];
}

/** Enter on a button inside a reply is that button's. */
function isOnCard(): boolean {
  return document.activeElement?.matches('article[data-lane]') ?? false;
}
