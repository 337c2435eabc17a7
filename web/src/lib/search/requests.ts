/** Looking something up, in one project or in all of them. */
import { request } from '$lib/api/client';
import type { Filters, SearchAnswer } from '$lib/api/types';

export function search(
  projectId: string | null,
  query: string,
  filters: Filters = {},
  limit = 10,
  signal?: AbortSignal,
): Promise<SearchAnswer> {
  const address = projectId ? `/api/projects/${projectId}/search` : '/api/search/global';
  return request('POST', address, { query, filters, limit }, signal ? { signal } : {});
}
