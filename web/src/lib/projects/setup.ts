/** The form of a project's settings: field values until they are saved, and their errors. */
import type { ContextStrategy, Project, ProjectChange } from '$lib/api/types';

export interface Filled {
  instructions: string;
  strategy: ContextStrategy;
  most: string;
  isLookingUp: boolean;
  inFiles: boolean;
  inConversations: boolean;
  lines: string;
  passages: string;
}

export type Wrong = Partial<Record<'most' | 'lines' | 'passages', string>>;

/** Unsaved changes of each project's settings, kept while a person visits other pages. */
export const unsaved = new Map<string, Filled>();

export function filledFrom({ instructions, settings }: Project): Filled {
  const { enabled, chunk_size, max_results, scope } = settings.retrieval_config;
  return {
    instructions,
    strategy: settings.context_strategy,
    most: String(settings.max_context_tokens),
    isLookingUp: enabled,
    inFiles: scope.files,
    inConversations: scope.conversations,
    lines: String(chunk_size),
    passages: String(max_results),
  };
}

export function wrongIn({ most, lines, passages }: Filled): Wrong {
  return {
    ...(!isWithin(most, 1_000, 10_000_000) && { most: 'At least 1000 tokens, like 32000' }),
    ...(!isWithin(lines, 5, 1_000) && { lines: 'From 5 to 1000 lines' }),
    ...(!isWithin(passages, 0, 100) && { passages: 'From 0 to 100' }),
  };
}

function isWithin(typed: string, least: number, most: number): boolean {
  return /^\d{1,8}$/.test(typed.trim()) && Number(typed) >= least && Number(typed) <= most;
}

export function changeOf(project: Project, filled: Filled): ProjectChange {
  const retrieval_config = {
    ...project.settings.retrieval_config,
    enabled: filled.isLookingUp,
    scope: { files: filled.inFiles, conversations: filled.inConversations },
    chunk_size: Number(filled.lines),
    max_results: Number(filled.passages),
  };
  const settings = {
    ...project.settings,
    context_strategy: filled.strategy,
    max_context_tokens: Number(filled.most),
    retrieval_config,
  };
  return { instructions: filled.instructions, settings };
}
