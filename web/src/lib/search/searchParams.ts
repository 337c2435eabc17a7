/** The query and its filters as parameters of the address: /search?q=token&in=…&kind=files&type=md. */
import type { Filters } from '$lib/api/types';
import { routes } from '$lib/routes';
import type { SearchMode } from './requests';

export type Kind = 'all' | 'talk' | 'files';

export interface SearchParams {
  query: string;
  /** Null for all one may see. */
  projectId: string | null;
  kind: Kind;
  mode: SearchMode;
  /** Endings without their dot. */
  types: string[];
  /** A file or a folder. */
  path: string;
  tags: string[];
  /** "user", "agent:" and the model, or the name of a person or a persona. */
  speaker: string | null;
  /** Days as 2026-11-16, in the time zone of who asks; empty for any. */
  since: string;
  until: string;
}

export const ANYTHING: SearchParams = {
  query: '',
  projectId: null,
  kind: 'all',
  mode: 'hybrid',
  types: [],
  path: '',
  tags: [],
  speaker: null,
  since: '',
  until: '',
};

const DAY = /^\d{4}-\d{2}-\d{2}$/;

export function searchParamsIn(query: URLSearchParams): SearchParams {
  const day = (name: string) => (DAY.test(query.get(name) ?? '') ? query.get(name)! : '');
  return {
    query: query.get('q') ?? '',
    projectId: query.get('in'),
    kind: oneOf(query.get('kind'), ['talk', 'files'], 'all'),
    mode: oneOf(query.get('by'), ['keyword', 'meaning'], 'hybrid'),
    types: listIn((query.get('type') ?? '').replace(/(^|,)\s*\./g, '$1')),
    path: query.get('path') ?? '',
    tags: listIn(query.get('tag') ?? ''),
    speaker: query.get('who'),
    since: day('since'),
    until: day('until'),
  };
}

/** Returns the address of a search; it holds only parameters that differ from the defaults. */
export function addressOfSearch(asked: Partial<SearchParams>): string {
  const { query, projectId, kind, mode, types, path, tags, speaker, since, until } = {
    ...ANYTHING,
    ...asked,
  };
  const params = Object.entries({
    q: query,
    in: projectId ?? '',
    kind: kind === 'all' ? '' : kind,
    by: mode === 'hybrid' ? '' : mode,
    type: types.join(','),
    path,
    tag: tags.join(','),
    who: speaker ?? '',
    since,
    until,
  }).filter(([, value]) => value !== '');
  return params.length ? `${routes.search}?${new URLSearchParams(params)}` : routes.search;
}

export function filtersOf({ kind, types, path, tags, speaker, since, until }: SearchParams): Filters {
  return {
    ...(types.length && { file_types: types }),
    ...(path && { paths: [path] }),
    ...(tags.length && { tags }),
    ...(speaker && { speaker }),
    ...(since && { since: beginOf(since) }),
    ...(until && { until: beginOf(until, 1) - 1 }),
    ...(kind === 'files' && { exclude_conversations: true }),
    ...(kind === 'talk' && { exclude_files: true }),
  };
}

/** Whether something is left out that would be found without it. */
export function isNarrowed(asked: SearchParams): boolean {
  return asked.kind !== 'all' || Object.keys(filtersOf(asked)).length > 0;
}

/** "md, .ts" → ["md", ".ts"] */
export function listIn(typed: string): string[] {
  const parts = typed.split(',').map((each) => each.trim());
  return [...new Set(parts.filter(Boolean))];
}

/** The day so many days before another, as 2026-11-09. */
export function dayBefore(days: number, now: Date = new Date()): string {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() - days);
  const two = (part: number) => String(part).padStart(2, '0');
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

function beginOf(day: string, later = 0): number {
  const [year, month, date] = day.split('-').map(Number) as [number, number, number];
  return new Date(year, month - 1, date + later).getTime();
}

function oneOf<T extends string, U extends string>(value: string | null, values: T[], usual: U): T | U {
  return values.find((each) => each === value) ?? usual;
}
