/** Search scopes: what is searched for passages that fit a question. */
import type { Project, SearchScope } from '$lib/api/types';

const ALL: SearchScope = { files: true, conversations: true };

/** Returns the scope the person chose last, else the project's; null where the project has search off. */
export function scopeIn(
  project: Pick<Project, 'settings'> | undefined,
  chosen: SearchScope | null,
): SearchScope | null {
  const config = project?.settings.retrieval_config;
  if (config && !config.enabled) return null;
  return chosen ?? config?.scope ?? ALL;
}

/** "Search: all", "Search: files" */
export function scopeName({ files, conversations }: SearchScope): string {
  if (files && conversations) return 'Search: all';
  if (files) return 'Search: files';
  return conversations ? 'Search: conversations' : 'Search: off';
}
