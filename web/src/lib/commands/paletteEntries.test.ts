import { expect, it, vi } from 'vitest';
import type { Conversation, Hit, ProjectFile } from '../api/types';
import { howToSearch, searchedFor, sectionsFor } from './paletteEntries';

const hit = (chunk_id: string, source_type: Hit['source_type'], title: string) =>
  ({
    chunk_id,
    source_type,
    title,
    snippet: 'the old token',
    score: 1,
    found_by: ['keyword'],
    highlights: [{ start: 8, end: 13 }],
    location: { start_line: 3, end_line: 9, round_number: null },
  }) as Hit;

const known = {
  commands: [{ id: 'theme', title: 'Token of light', group: 'Anywhere', run: vi.fn() } as const],
  conversations: [{ id: 'c', title: 'Tokens', project_id: 'p', updated_at: 1 } as Conversation],
  projects: {},
  files: [
    {
      id: 'f',
      project_id: 'p',
      path: 'src/token.ts',
      metadata: { always_in_context: false, retrieval_eligible: true },
      index: { state: 'indexed', chunks: 6, reason: null },
    } as ProjectFile,
  ],
  hits: [hit('h1', 'conversation_message', 'Trains'), hit('h2', 'file', 'docs/auth.md')],
  open: vi.fn(),
  openFile: vi.fn(),
  openFileBeside: vi.fn(),
  openHit: vi.fn(),
  openBeside: vi.fn(),
  searchFor: vi.fn(),
};

it('come as actions, conversations, files, what was said, and the whole search last', () => {
  const sections = sectionsFor('token', known);
  expect(sections.map(({ label }) => label)).toEqual([
    'Actions',
    'Conversations',
    'Files',
    'In conversations',
    'Search',
  ]);
  const last = sections.at(-1)!.entries[0]!;
  expect(last.title).toBe('Search everywhere for “token”');
  last.run();
  expect(known.searchFor).toHaveBeenCalledWith('token');
});

it('show where a hit is and what it says; only a file opens beside the page', () => {
  const [file, said] = sectionsFor('token', known).slice(2, 4);
  expect(file!.entries[1]).toMatchObject({ title: 'docs/auth.md', hint: 'lines 3–9' });
  expect(file!.entries[1]!.excerpt!.find((piece) => piece.isHit)!.text).toBe('token');
  expect(said!.entries[0]!.runBeside).toBeUndefined();
  file!.entries[1]!.runBeside!();
  expect(known.openBeside).toHaveBeenCalledWith(known.hits[1]);
});

it('name a file before those in which the word is written, and after a # files alone', () => {
  const named = { title: 'src/token.ts', hint: '6 passages' };
  const files = sectionsFor('token', known).find(({ label }) => label === 'Files')!;
  expect(files.entries.map(({ title }) => title)).toEqual(['src/token.ts', 'docs/auth.md']);
  const [only, ...others] = sectionsFor('#tok', known);
  expect([only!.entries[0], others]).toMatchObject([named, []]);
  only!.entries[0]!.run();
  expect(known.openFile).toHaveBeenCalledWith(known.files[0]);
});

it('leave out a weak match that has none of the words', () => {
  const far = { ...hit('h3', 'file', 'milk.txt'), match: 'weak' as const, found_by: ['meaning'] };
  const titles = (hits: Hit[]) =>
    sectionsFor('old token', { ...known, hits }).flatMap(({ entries }) => entries.map(({ title }) => title));
  expect(titles([...known.hits, far])).not.toContain('milk.txt');
  expect(titles([{ ...far, match: 'match' }])).toContain('milk.txt');
});

it('look for a word that may be half typed by its letters alone', () => {
  expect(['bra', 'brain trust'].map(howToSearch)).toEqual(['keyword', 'hybrid']);
});

it('leave the search alone for a letter, for nothing, for actions and for files', () => {
  expect(['', 't', '>token', '#token'].map(searchedFor)).toEqual(['', '', '', '']);
  expect(searchedFor(' token ')).toBe('token');
  expect(sectionsFor('>token', known).map(({ label }) => label)).toEqual(['Actions']);
});
