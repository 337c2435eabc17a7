import { expect, it } from 'vitest';
import type { Hit } from '$lib/api/types';
import {
  addressOf,
  excerpt,
  matchWords,
  placeOf,
  snippetLines,
  snippetPieces,
  plainPieces,
} from './snippets';

const nowhere = {
  path: null,
  start_line: null,
  end_line: null,
  start_char: null,
  end_char: null,
  conversation_id: null,
  round_number: null,
  speaker: null,
};

it('marks what matches by characters, so that pictures before it do not shift it', () => {
  expect(snippetPieces('🌳 old token', [{ start: 6, end: 11 }])).toEqual([
    { text: '🌳 old ', isHit: false },
    { text: 'token', isHit: true },
  ]);
  const pair = [
    { start: 4, end: 7 },
    { start: 8, end: 13 },
  ];
  expect(snippetPieces('the old token.', pair)[1]).toEqual({ text: 'old token', isHit: true });
  expect(snippetPieces('plain', [])).toEqual([{ text: 'plain', isHit: false }]);
});

it('leads to the lines of a file or the round of a conversation', () => {
  const file = {
    source_type: 'file',
    source_id: 'f',
    project_id: 'p',
    location: { ...nowhere, start_line: 3, end_line: 9 },
  } as Hit;
  expect(addressOf(file)).toBe('/p/p?file=f&line=3&to=9');
  expect(placeOf(file)).toBe('lines 3–9');
  const said = {
    source_type: 'conversation_message',
    source_id: 'm',
    location: { ...nowhere, conversation_id: 'c', round_number: 4 },
  } as Hit;
  expect(addressOf(said)).toBe('/c/c#round-4/m');
  expect(placeOf(said)).toBe('round 4');
});

const hit = {
  content: '# Refresh\n\nA token is used once.\nThe old token is\nrevoked.\n',
  snippet: 'A token is used once.\nThe old token is\n',
  highlights: [
    { start: 2, end: 7 },
    { start: 30, end: 35 },
  ],
  location: { ...nowhere, start_line: 40, end_line: 45 },
} as Hit;

it('numbers the lines of a snippet as they stand in the file', () => {
  const lines = snippetLines(hit);
  expect(lines.map((line) => line.number)).toEqual([42, 43]);
  expect(lines[1]!.pieces.filter((piece) => piece.isHit)).toEqual([{ text: 'token', isHit: true }]);
  expect(snippetLines({ ...hit, location: nowhere })[0]!.number).toBeNull();
});

it('shows a few lines, from just before the first that matches', () => {
  const content = Array.from({ length: 20 }, (_, n) => `line ${n + 1}`).join('\n');
  const at = content.indexOf('line 9');
  const long = { ...hit, content, snippet: content, highlights: [{ start: at, end: at + 6 }] };
  expect(
    snippetLines({ ...long, location: { ...nowhere, start_line: 1 } }).map((line) => line.number),
  ).toEqual([8, 9, 10, 11, 12]);
});

it('keeps a highlight that goes over the end of a line on both lines', () => {
  const over = snippetLines({ ...hit, highlights: [{ start: 16, end: 25 }] });
  expect(over.map((line) => line.pieces.find((piece) => piece.isHit)?.text)).toEqual(['once.', 'The']);
});

it('shortens a snippet to a line that begins near what matched', () => {
  const shown = excerpt({ ...hit, highlights: [{ start: 30, end: 35 }] }, 10).map((piece) => piece.text);
  expect(shown.join('')).toBe('…The old token is');
  expect(excerpt({ ...hit, highlights: [] })[0]!.text.startsWith('A token')).toBe(true);
});

it('says in words how well it matches, and why', () => {
  expect(matchWords({ match: 'strong', why: '3 of 4 words' })).toBe('strong match · 3 of 4 words');
  expect(matchWords({ match: 'weak', why: 'nearby words' })).toBe('weak match · nearby words');
  expect(matchWords({ match: 'match', why: '' })).toBe('match');
});

it('reads what was said as plain words, with what matched still marked', () => {
  const said = '# Title\n- **Reversibility.** *Say* 2 * 3 * 4. A `token` here\n```ts a.ts\nx = 1\n```\n';
  const start = said.indexOf('token');
  const pieces = plainPieces(said, [{ start, end: start + 5 }]);
  expect(pieces.map(({ text }) => text).join('')).toBe(
    'Title. Reversibility. Say 2 * 3 * 4. A token here. x = 1',
  );
  expect(pieces.find(({ isHit }) => isHit)?.text).toBe('token');
});

it('keeps names, formulas and programs in what was said, and marks a part of a name', () => {
  const said =
    'Set `max_retry_count`, so $x_1$ holds. ## is no heading\n\n```py\nmax_retry_count = 3\n```\nthen **stop';
  const spans = [said.indexOf('retry'), said.lastIndexOf('retry')].map((start) => ({
    start,
    end: start + 5,
  }));
  const pieces = plainPieces(said, spans);
  expect(pieces.map(({ text }) => text).join('')).toBe(
    'Set max_retry_count, so x_1 holds. ## is no heading. max_retry_count = 3 then stop',
  );
  expect(pieces.filter(({ isHit }) => isHit).map(({ text }) => text)).toEqual(['retry', 'retry']);
});

it('shows what was said in the palette as plain words around what matched', () => {
  const snippet = '## A long heading that goes on\n\n- the **old** `my_token` is *here*';
  const start = snippet.indexOf('my_token');
  const said = {
    ...hit,
    source_type: 'conversation_message',
    snippet,
    highlights: [{ start, end: start + 8 }],
  };
  expect(excerpt(said as Hit, 12)).toEqual([
    { text: '…the old ', isHit: false },
    { text: 'my_token', isHit: true },
    { text: ' is here', isHit: false },
  ]);
  const file = excerpt({ ...said, source_type: 'file' } as Hit, 12);
  expect(file.map(({ text }) => text).join('')).toContain('`my_token` is *here*');
});

it('reads a Markdown file as plain words in a preview', () => {
  const snippet = '## Keys\n\nThe **gateway** keeps `session_ids` for 30 days';
  const start = snippet.indexOf('session_ids');
  const found = {
    source_type: 'file' as const,
    title: 'docs/plan.md',
    snippet,
    highlights: [{ start, end: start + 11 }],
  };
  const line = excerpt(found, Infinity).map(({ text }) => text);
  expect(line.join('')).toBe('Keys. The gateway keeps session_ids for 30 days');
  expect(line).toContain('session_ids');
});

it('takes the marks off what matched, too', () => {
  const said = 'The warmth of the *starter* counts, and the **starter** itself.';
  const spans = ['*starter', '**starter'].map((each) => {
    const start = said.indexOf(each) + each.indexOf('s');
    return { start, end: start + 7 };
  });
  expect(plainPieces(said, spans)).toEqual([
    { text: 'The warmth of the ', isHit: false },
    { text: 'starter', isHit: true },
    { text: ' counts, and the ', isHit: false },
    { text: 'starter', isHit: true },
    { text: ' itself.', isHit: false },
  ]);
});
