/** What the palette offers for what was typed: actions, then conversations; ">" asks for actions only. */
import MessageSquare from '@lucide/svelte/icons/message-square';
import type { Conversation, Project } from '../api/types';
import { titleOf } from '../conversations/groups';
import type { Picture } from '../ui/picture';
import type { Command } from './commands.svelte';
import { score } from './match';

export interface Entry {
  id: string;
  title: string;
  icon?: Picture | undefined;
  keys?: string | undefined;
  hint?: string;
  run: () => void;
}

export interface Section {
  label: string;
  entries: Entry[];
}

interface Known {
  commands: Command[];
  conversations: Conversation[];
  projects: Record<string, Project>;
  open: (conversation: Conversation) => void;
}

const MOST = 8;
const RECENT = 5;

export function sectionsFor(typed: string, known: Known): Section[] {
  const onlyActions = typed.startsWith('>');
  const query = typed.replace(/^>/, '').trim();
  const actions = best(actionsOf(known.commands), query, query || onlyActions ? 20 : MOST);
  const found = onlyActions ? [] : best(conversationsOf(known), query, query ? 20 : RECENT);
  const sections = query
    ? [
        { label: 'Actions', entries: actions },
        { label: 'Conversations', entries: found },
      ]
    : [
        { label: 'Recent', entries: found },
        { label: 'Actions', entries: actions },
      ];
  return sections.filter(({ entries }) => entries.length);
}

function actionsOf(commands: Command[]): Entry[] {
  return commands
    .filter((each) => each.run && each.palette !== false && (each.when?.() ?? true))
    .map(({ id, title, icon, keys, run }) => ({ id, title, icon, keys: keys?.split(',')[0], run: run! }));
}

function conversationsOf({ conversations, projects, open }: Known): Entry[] {
  return [...conversations]
    .sort((a, b) => b.updated_at - a.updated_at)
    .map((each) => ({
      id: each.id,
      title: titleOf(each),
      icon: MessageSquare,
      hint: [projects[each.project_id]?.name, each.archived && 'archived'].filter(Boolean).join(' · '),
      run: () => open(each),
    }));
}

function best(entries: Entry[], query: string, most: number): Entry[] {
  if (!query) return entries.slice(0, most);
  return entries
    .map((entry) => ({ entry, score: score(entry.title, query) }))
    .filter((each) => each.score)
    .sort((a, b) => b.score - a.score)
    .slice(0, most)
    .map((each) => each.entry);
}
