import { expect, it } from 'vitest';
import type { Hit } from '$lib/api/types';
import { addressOf, placeOf, snippetPieces } from './snippets';

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
    location: { ...nowhere, conversation_id: 'c', round_number: 4 },
  } as Hit;
  expect(addressOf(said)).toBe('/c/c#round-4');
  expect(placeOf(said)).toBe('round 4');
});
