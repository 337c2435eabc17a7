import { expect, it } from 'vitest';
import type { ProjectFile } from '$lib/api/types';
import {
  common,
  diffLines,
  foldersOf,
  foundBy,
  hasText,
  matches,
  nameIn,
  rowsWithin,
  size,
  tagsIn,
  tagsOf,
} from './files';

function file(path: string, change: Partial<ProjectFile> = {}): ProjectFile {
  return {
    id: path,
    project_id: 'p',
    path,
    mime_type: 'text/plain',
    size_bytes: 1,
    content_hash: '',
    version: 1,
    metadata: {
      always_in_context: false,
      retrieval_eligible: true,
      tool_accessible: true,
      tags: ['design'],
      summary: '',
    },
    index: { state: 'indexed', chunks: 1, percent: 100, reason: null },
    created_by: 'u',
    created_at: 0,
    updated_at: 0,
    upload_key: null,
    ...change,
  };
}

it('lists files under their first folder, those in none first', () => {
  const folders = foldersOf([file('docs/a/b.md'), file('docs/c.md'), file('z.md')]);
  expect(folders.map(({ name, files }) => [name, files.length])).toEqual([
    ['', 1],
    ['docs', 2],
  ]);
  expect(nameIn(folders[1]!, folders[1]!.files[0]!)).toBe('a/b.md');
  expect(nameIn(folders[0]!, folders[0]!.files[0]!)).toBe('z.md');
});

it('draws the first rows of a long list, and none of a folder that is closed', () => {
  const folders = foldersOf(['a/1', 'a/2', 'b/1', 'b/2', 'c/1'].map((path) => file(path)));
  const rows = (isOpen: (name: string) => boolean, most: number) =>
    rowsWithin(folders, isOpen, most).map(({ folder, rows }) => [folder.name, rows.length]);
  expect(rows(() => true, 5)).toEqual([
    ['a', 2],
    ['b', 2],
  ]);
  expect(rows((name) => name !== 'a', 4)).toEqual([
    ['a', 0],
    ['b', 2],
  ]);
});

it('finds a file by words of its path and tags', () => {
  expect(matches(file('docs/Plan.md'), 'plan des')).toBe(true);
  expect(matches(file('docs/Plan.md'), 'plan x')).toBe(false);
  expect(matches(file('docs/Plan.md'), '')).toBe(true);
});

it.each([
  [812, '812 B'],
  [15_200, '15 KB'],
  [2_100_000, '2.1 MB'],
  [212_000_000, '212 MB'],
  [1_500_000_000, '1.5 GB'],
])('%i bytes read %s', (bytes, shown) => expect(size(bytes)).toBe(shown));

it('says how far a file can be found, and why it cannot', () => {
  const index = { state: 'indexing', chunks: 0, percent: 62, reason: null } as const;
  expect(foundBy(file('a', { index }))).toMatchObject({ words: 'indexing 62%', tone: 'busy' });
  expect(foundBy(file('a'))).toMatchObject({ words: '1 passage', tone: 'plain' });
  const broken = { ...index, state: 'failed', reason: 'It is encrypted.' } as const;
  expect(foundBy(file('a', { index: broken }))).toMatchObject({ tone: 'danger', reason: 'It is encrypted.' });
});

it('reads tags between commas, each once', () => {
  expect(tagsIn(' design, auth,, design ')).toEqual(['design', 'auth']);
});

it('shows what changed, without the names of the files', () => {
  expect(diffLines('--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n')).toEqual([
    { text: 'from line 1', kind: 'place' },
    { text: 'old', kind: 'removed' },
    { text: 'new', kind: 'added' },
    { text: 'same', kind: 'same' },
  ]);
});

it('says what the files of a folder have in common', () => {
  const [on, off] = [true, false].map((always_in_context) =>
    file('a', { metadata: { ...file('a').metadata, always_in_context } }),
  );
  expect(common([on!, on!], 'always_in_context')).toBe(true);
  expect(common([off!], 'always_in_context')).toBe(false);
  expect(common([on!, off!], 'always_in_context')).toBe('mixed');
});

it('knows every tag once', () => {
  expect(tagsOf([file('a'), file('b')])).toEqual(['design']);
});

const state = (state: ProjectFile['index']['state']) => ({ state, chunks: 0, percent: 0, reason: null });

it.each([
  ['a picture', file('sea.png', { mime_type: 'image/png', index: state('not_indexed') }), false],
  [
    'a picture that is still read',
    file('sea.png', { mime_type: 'image/png', index: state('queued') }),
    false,
  ],
  ['an unreadable file', file('torn.pdf', { index: state('failed') }), false],
  ['a file without text', file('film.bin', { index: state('not_indexed') }), false],
  ['a text that is still read', file('a.md', { index: state('reading') }), true],
])('%s has text for models, or not', (_, read, expected) => {
  expect(hasText(read)).toBe(expected);
});

it('a text that is kept out of search still has its text', () => {
  const kept = file('a.md', { index: state('not_indexed') });
  expect(hasText({ ...kept, metadata: { ...kept.metadata, retrieval_eligible: false } })).toBe(true);
});

it('a folder shows what its files with text have in common, whatever its pictures say', () => {
  const off = file('a/b.md', { metadata: { ...file('x').metadata, tool_accessible: false } });
  const picture = file('a/sea.png', { mime_type: 'image/png', index: state('not_indexed') });
  expect(common([off, picture], 'tool_accessible')).toBe(false);
});
