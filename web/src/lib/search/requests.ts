/** The search request, in one project or in all. */
import { request } from '$lib/api/client';
import type { Filters, SearchAnswer } from '$lib/api/types';

/** The search mode: by word and by meaning, or only by word or by meaning. */
export type SearchMode = 'hybrid' | 'keyword' | 'meaning';

export interface SearchQuery {
  filters?: Filters;
  limit?: number;
  mode?: SearchMode;
  /** The start of the page: the `next` of the page before. */
  cursor?: string | null;
  signal?: AbortSignal;
}

export function search(
  projectId: string | null,
  query: string,
  { filters = {}, limit = 10, mode = 'hybrid', cursor = null, signal }: SearchQuery = {},
): Promise<SearchAnswer> {
  const address = projectId ? `/api/projects/${projectId}/search` : '/api/search/global';
  return request('POST', address, { query, filters, limit, mode, cursor }, signal ? { signal } : {});
}
