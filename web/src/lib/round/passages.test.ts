import { expect, it } from 'vitest';
import type { Passage } from '$lib/api/types';
import { addressOf, nameOf, passagesOf, placeOf } from './passages';

const file: Passage = {
  source_type: 'file',
  source_id: 'f1',
  name: 'docs/report.md',
  conversation_id: null,
  round_number: null,
  start_line: 12,
  end_line: 40,
};
const said: Passage = {
  source_type: 'conversation_message',
  source_id: 'm1',
  name: 'SQLite',
  conversation_id: 'c2',
  round_number: 3,
  start_line: null,
  end_line: null,
};

it('shows what several voices were sent once, in the order in which it was found', () => {
  const shown = passagesOf([{ found: [file] }, { found: [said, file] }]);
  expect(shown.map(({ source_id }) => source_id)).toEqual(['f1', 'm1']);
});

it('shows a round once, whichever of its messages were found', () => {
  expect(passagesOf([{ found: [said, { ...said, source_id: 'm2' }] }])).toEqual([said]);
});

it('names a file by its last part and its lines', () => {
  expect(`${nameOf(file, 'c1', undefined)} ${placeOf(file)}`).toBe('report.md lines 12–40');
  expect(placeOf({ ...file, end_line: 12 })).toBe('line 12');
});

it('names another conversation as it is called now, and this one by the round alone', () => {
  expect(nameOf(said, 'c1', 'Databases')).toBe('Databases');
  expect(nameOf(said, 'c1', undefined)).toBe('SQLite');
  expect(nameOf(said, 'c2', 'Databases')).toBe('');
  expect(placeOf(said)).toBe('round 3');
});

it('leads to the lines of the file and to the message of the round', () => {
  expect(addressOf(file, 'p1')).toBe('/p/p1?file=f1&line=12&to=40');
  expect(addressOf(said, 'p1')).toBe('/c/c2#round-3/m1');
});
