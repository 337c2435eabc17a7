/**
 * What the palette offers for what was typed: actions, conversations, files by their names, then what the search
 * found in files and in what was said, and the search itself; ">" asks for actions only, "#" for files.
 */
import FileText from '@lucide/svelte/icons/file-text';
import MessageSquare from '@lucide/svelte/icons/message-square';
import Quote from '@lucide/svelte/icons/text-quote';
import SearchIcon from '@lucide/svelte/icons/search';
import type { Conversation, Hit, Project, ProjectFile } from '../api/types';
import { titleOf } from '../conversations/groups';
import { foundBy } from '../files/files';
import type { SearchMode } from '../search/requests';
import { excerpt, placeOf, type Piece } from '../search/snippets';
import type { IconComponent } from '$lib/ui/icon';
import type { Command } from './commands.svelte';
import { score } from './match';

export interface Entry {
  id: string;
  title: string;
  icon?: IconComponent | undefined;
  keys?: string | undefined;
  hint?: string;
  /** The words around what was found. */
  excerpt?: Piece[];
  run: () => void;
  /** Without leaving the page. */
  runBeside?: () => void;
}

export interface Section {
  label: string;
  entries: Entry[];
}

interface Known {
  commands: Command[];
  conversations: Conversation[];
  projects: Record<string, Project>;
  /** The files of the current project. */
  files: ProjectFile[];
  hits: Hit[];
  open: (conversation: Conversation) => void;
  openFile: (file: ProjectFile) => void;
  openFileBeside: (file: ProjectFile) => void;
  openHit: (hit: Hit) => void;
  openBeside: (hit: Hit) => void;
  searchFor: (query: string) => void;
}

const MOST = 8;
const RECENT = 5;
const HITS = 5;
const NAMED = 4;

/** Returns the query to search for; empty while fewer than two characters are typed, or after > or #. */
export function searchedFor(typed: string): string {
  const query = typed.trim();
  return /^[>#]/.test(typed) || query.length < 2 ? '' : query;
}

/** Half a word means nothing yet: a single one is looked for by its letters alone. */
export function howToSearch(query: string): SearchMode {
  return /\s/.test(query) ? 'hybrid' : 'keyword';
}

export function sectionsFor(typed: string, known: Known): Section[] {
  const [onlyActions, onlyFiles] = [typed.startsWith('>'), typed.startsWith('#')];
  const query = typed.replace(/^[>#]/, '').trim();
  if (onlyFiles) return filled([{ label: 'Files', entries: best(filesOf(known), query, 20) }]);
  const searched = searchedFor(typed);
  const actions = best(actionsOf(known.commands), query, query || onlyActions ? 20 : MOST);
  const found = onlyActions ? [] : best(conversationsOf(known), query, query ? 20 : RECENT);
  const sections = query
    ? [
        { label: 'Actions', entries: actions },
        { label: 'Conversations', entries: found },
        ...(searched ? foundBySearch(query, known) : []),
      ]
    : [
        { label: 'Recent', entries: found },
        { label: 'Actions', entries: actions },
      ];
  return filled(sections);
}

function filled(sections: Section[]): Section[] {
  return sections.filter(({ entries }) => entries.length);
}

function actionsOf(commands: Command[]): Entry[] {
  return commands
    .filter((command) => command.run && command.palette !== false && (command.when?.() ?? true))
    .map(({ id, title, icon, keys, run }) => ({ id, title, icon, keys: keys?.split(',')[0], run: run! }));
}

function conversationsOf({ conversations, projects, open }: Known): Entry[] {
  return [...conversations]
    .sort((a, b) => b.updated_at - a.updated_at)
    .map((conversation) => ({
      id: conversation.id,
      title: titleOf(conversation),
      icon: MessageSquare,
      hint: [projects[conversation.project_id]?.name, conversation.archived && 'archived']
        .filter(Boolean)
        .join(' · '),
      run: () => open(conversation),
    }));
}

function filesOf({ files, openFile, openFileBeside }: Known): Entry[] {
  return files.map((file) => ({
    id: file.id,
    title: file.path,
    icon: FileText,
    hint: file.metadata.always_in_context ? 'always sent' : foundBy(file).words,
    run: () => openFile(file),
    runBeside: () => openFileBeside(file),
  }));
}

/** A file that goes by what was typed comes before those in which it is written. */
function foundBySearch(query: string, known: Known): Section[] {
  const isFile = (hit: Hit) => hit.source_type === 'file';
  const hits = near(known.hits);
  const named = best(filesOf(known), query, NAMED);
  return [
    { label: 'Files', entries: [...named, ...entriesOf(hits.filter(isFile), known)] },
    {
      label: 'In conversations',
      entries: entriesOf(
        hits.filter((hit) => !isFile(hit)),
        known,
      ),
    },
    {
      label: 'Search',
      entries: [
        {
          id: 'search-everywhere',
          title: `Search everywhere for “${query}”`,
          icon: SearchIcon,
          run: () => known.searchFor(query),
        },
      ],
    },
  ];
}

/** There is room for a few: what has no word of it and is a weak match is left to the page. */
function near(hits: Hit[]): Hit[] {
  return hits.filter(({ found_by, match }) => found_by.includes('keyword') || match !== 'weak');
}

function entriesOf(hits: Hit[], { openHit, openBeside }: Known): Entry[] {
  return hits.slice(0, HITS).map((hit) => ({
    id: hit.chunk_id,
    title: hit.title || 'New conversation',
    icon: hit.source_type === 'file' ? FileText : Quote,
    hint: placeOf(hit),
    excerpt: excerpt(hit),
    run: () => openHit(hit),
    ...(hit.source_type === 'file' && { runBeside: () => openBeside(hit) }),
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
