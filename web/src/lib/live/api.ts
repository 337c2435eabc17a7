/** GET requests that fill the store before the stream takes over. Every one throws ApiError. */
import { ApiError, request } from '../api/client';
import type {
  ConversationList,
  ConversationPage,
  FileList,
  OlderRounds,
  PersonaList,
  PersonList,
  ProjectFile,
  TableList,
} from '../api/types';

export interface ProjectRead {
  page: ConversationList;
  personas: PersonaList;
  tables: TableList;
  people: PersonList;
  /** The cursor of the oldest of the four answers. */
  cursor: number;
}

export async function readProject(id: string): Promise<ProjectRead> {
  const [page, personas, tables, people] = await Promise.all([
    readConversations(id),
    request<PersonaList>('GET', `/api/personas?project_id=${id}`),
    request<TableList>('GET', `/api/tables?project_id=${id}`),
    request<PersonList>('GET', `/api/projects/${id}/people`),
  ]);
  const cursor = Math.min(page.cursor, personas.cursor, tables.cursor, people.cursor);
  return { page, personas, tables, people, cursor };
}

export function readConversations(
  projectId: string,
  more: Record<string, string> = {},
): Promise<ConversationList> {
  const query = new URLSearchParams({ project_id: projectId, limit: '50', ...more });
  return request('GET', `/api/conversations?${query}`);
}

export function readConversation(id: string): Promise<ConversationPage> {
  return request('GET', `/api/conversations/${id}`);
}

/** Reads the rounds before a given round, at most a hundred. */
export function readRounds(id: string, before: number, limit: number): Promise<OlderRounds> {
  const query = new URLSearchParams({ before: String(before), limit: String(limit) });
  return request('GET', `/api/conversations/${id}/messages?${query}`);
}

/** All files of a project, each part as it comes. */
export async function* readFiles(
  projectId: string,
): AsyncGenerator<{ items: ProjectFile[]; cursor: number }> {
  let next: string | null = null;
  do {
    const query = new URLSearchParams({ limit: '100', ...(next && { cursor: next }) });
    const page: FileList = await request('GET', `/api/projects/${projectId}/files?${query}`);
    yield page;
    next = page.next;
  } while (next !== null);
}

/** Worth another try: no network, or a server that is busy or broken for now. */
export function isPassing(reason: unknown): boolean {
  return reason instanceof ApiError && (reason.status === 0 || reason.status === 429 || reason.status >= 500);
}
