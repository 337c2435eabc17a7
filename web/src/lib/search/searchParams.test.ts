import { expect, it } from 'vitest';
import {
  ANYTHING,
  addressOfSearch,
  searchParamsIn,
  dayBefore,
  filtersOf,
  isNarrowed,
  type SearchParams,
} from './searchParams';

const all: SearchParams = {
  query: 'old token & keys',
  projectId: 'p1',
  kind: 'files',
  mode: 'meaning',
  types: ['md', 'ts'],
  path: 'docs/auth flow',
  tags: ['design', 'señal'],
  speaker: 'agent:gpt-4o',
  since: '2026-11-01',
  until: '2026-11-16',
};
const queryOf = (address: string) => new URL(address, 'http://here').searchParams;

it('is said whole by its address, and nothing is said that is as usual', () => {
  expect(searchParamsIn(queryOf(addressOfSearch(all)))).toEqual(all);
  expect(addressOfSearch({ query: 'token' })).toBe('/search?q=token');
  expect(addressOfSearch(ANYTHING)).toBe('/search');
});

it('takes what it does not understand as not said', () => {
  expect(searchParamsIn(new URLSearchParams('kind=songs&by=magic&since=soon'))).toEqual(ANYTHING);
  expect(searchParamsIn(new URLSearchParams('type=.md,, md,tar.gz')).types).toEqual(['md', 'tar.gz']);
});

it('asks for whole days, from the first moment of one to the last of the other', () => {
  const { since, until } = filtersOf({ ...ANYTHING, since: '2026-11-16', until: '2026-11-16' });
  expect(new Date(since!)).toEqual(new Date(2026, 10, 16));
  expect(new Date(until! + 1)).toEqual(new Date(2026, 10, 17));
  expect(dayBefore(7, new Date(2026, 0, 3))).toBe('2025-12-27');
});

it('leaves out only what a filter names', () => {
  expect(filtersOf({ ...ANYTHING, query: 'x', projectId: 'p', mode: 'keyword' })).toEqual({});
  expect(isNarrowed({ ...ANYTHING, query: 'x' })).toBe(false);
  expect(filtersOf({ ...ANYTHING, kind: 'talk' })).toEqual({ exclude_files: true });
  expect(isNarrowed({ ...ANYTHING, tags: ['a'] })).toBe(true);
});
