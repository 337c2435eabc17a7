/** Files as data for display: folders, sizes, index status, lines of a diff. */
import type { FileMetadata, ProjectFile } from '$lib/api/types';
import { counted } from '$lib/format/numbers';

export interface Folder {
  /** Empty for files that lie in none. */
  name: string;
  files: ProjectFile[];
}

/** By their first folder; files in none come first. */
export function foldersOf(files: ProjectFile[]): Folder[] {
  const folders = new Map<string, ProjectFile[]>();
  for (const file of files) {
    const name = file.path.includes('/') ? file.path.slice(0, file.path.indexOf('/')) : '';
    const inside = folders.get(name);
    if (inside) inside.push(file);
    else folders.set(name, [file]);
  }
  return [...folders]
    .map(([name, inside]) => ({ name, files: inside }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The first so many rows: of folders that are open, as many files as there is room for. */
export function rowsWithin(
  folders: Folder[],
  isOpen: (name: string) => boolean,
  most: number,
): { folder: Folder; rows: ProjectFile[] }[] {
  let left = most;
  return folders.flatMap((folder) => {
    if (left <= 0) return [];
    const rows = isOpen(folder.name) ? folder.files.slice(0, left) : [];
    left -= rows.length + 1;
    return [{ folder, rows }];
  });
}

/** Its path below the folder it is listed under. */
export function nameIn(folder: Folder, file: ProjectFile): string {
  return folder.name ? file.path.slice(folder.name.length + 1) : file.path;
}

/** Every word typed is in its path or its tags. */
export function matches(file: ProjectFile, typed: string): boolean {
  const where = `${file.path} ${file.metadata.tags.join(' ')}`.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => where.includes(word));
}

/** 812 B, 15 KB, 2.1 MB */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 999_500) return `${Math.round(bytes / 1_000)} KB`;
  const mega = bytes / 1_000_000;
  return mega < 999.5 ? `${mega.toFixed(mega < 10 ? 1 : 0)} MB` : `${(mega / 1_000).toFixed(1)} GB`;
}

export interface Found {
  words: string;
  tone: 'plain' | 'busy' | 'danger';
  /** Why, when there is more to say. */
  reason: string | null;
}

export function foundBy({ index, metadata }: ProjectFile): Found {
  const reason = index.reason;
  switch (index.state) {
    case 'queued':
      return { words: 'waiting', tone: 'busy', reason };
    case 'reading':
      return { words: 'reading', tone: 'busy', reason };
    case 'indexing':
      return { words: `indexing ${index.percent}%`, tone: 'busy', reason };
    case 'indexed':
      return {
        words: metadata.retrieval_eligible ? counted(index.chunks, 'passage') : 'not searched',
        tone: 'plain',
        reason,
      };
    case 'not_indexed':
      return { words: 'not indexed', tone: 'plain', reason };
    case 'failed':
      return { words: 'unreadable', tone: 'danger', reason };
  }
}

/** Whether models can be given the file's text: a picture has none, and what could not be read has none either. */
export function hasText({ index, metadata, mime_type }: ProjectFile): boolean {
  if (mime_type.startsWith('image/') || index.state === 'failed') return false;
  return index.state !== 'not_indexed' || !metadata.retrieval_eligible;
}

export const FLAGS = [
  { field: 'always_in_context', label: 'Always sent', about: 'Always sent' },
  { field: 'retrieval_eligible', label: 'Searched', about: 'Searched for each question' },
  { field: 'tool_accessible', label: 'For tools', about: 'For tools' },
] as const satisfies { field: keyof FileMetadata; label: string; about: string }[];

export type Flag = (typeof FLAGS)[number]['field'];

/** Returns the value of a flag in all files that have text: on, off, or mixed. */
export function common(all: ProjectFile[], flag: Flag): boolean | 'mixed' {
  const files = all.filter(hasText);
  const on = files.filter((file) => file.metadata[flag]).length;
  return on === 0 ? false : on === files.length ? true : 'mixed';
}

/** Every tag that some file has, in the order of the alphabet. */
export function tagsOf(files: ProjectFile[]): string[] {
  return [...new Set(files.flatMap((file) => file.metadata.tags))].sort((a, b) => a.localeCompare(b));
}

/** "design, auth" → ["design", "auth"] */
export function tagsIn(typed: string): string[] {
  return [
    ...new Set(
      typed
        .split(',')
        .map((each) => each.trim())
        .filter(Boolean),
    ),
  ];
}

export interface DiffLine {
  text: string;
  kind: 'added' | 'removed' | 'place' | 'same';
}

/** A unified difference without its two lines of names. */
export function diffLines(unified: string): DiffLine[] {
  return unified
    .split('\n')
    .filter((line, n, all) => !/^(---|\+\+\+) /.test(line) && !(line === '' && n === all.length - 1))
    .map((line) => ({ text: placeIn(line) ?? line.slice(1), kind: kindOf(line) }));
}

/** "@@ -98,7 +102,7 @@" → "from line 102" */
function placeIn(line: string): string | null {
  const first = /^@@ -\d+(?:,\d+)? \+(\d+)/.exec(line)?.[1];
  return first === undefined ? null : `from line ${first}`;
}

function kindOf(line: string): DiffLine['kind'] {
  if (line.startsWith('@@')) return 'place';
  return line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : 'same';
}
