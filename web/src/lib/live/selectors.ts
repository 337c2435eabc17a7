/**
 * Selectors: the parts of a project and of a conversation, in the order people read them. Pure; each takes the tables it looks at
 * and no more, so that nothing is put in order anew because something else was said.
 */
import type { Draft, Persona, ProjectFile, SavedTable, Turn } from '../api/types';
import type { Inherited, State } from './apply';
import type { Tables } from './items';

/** Returns the files of a project, sorted by path. */
export function filesOf(files: Tables['file'], projectId: string): ProjectFile[] {
  return Object.values(files)
    .filter((file) => file.project_id === projectId)
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Returns the personas that can be seated in a project: the built-in, the project's and the person's own. */
export function personasOf(personas: Tables['persona'], projectId: string | null): Persona[] {
  return byScope(Object.values(personas).filter((persona) => isAtHand(persona, projectId)));
}

/** Returns the saved tables a person can use: the project's, then the person's own. */
export function tablesOf(tables: Tables['table'], projectId: string | null): SavedTable[] {
  return byScope(Object.values(tables).filter((table) => isAtHand(table, projectId)));
}

/** Its own, and those it inherited: they are over for it, whatever still goes on where it left. */
export function turnsOf(
  turns: Tables['turn'],
  messages: Tables['message'],
  inherited: Inherited = {},
  conversationId: string,
): Turn[] {
  const asked = new Set(Object.keys(inherited).map((each) => messages[each]?.turn_id));
  return Object.values(turns)
    .filter(
      (turn) => turn.conversation_id === conversationId || (asked.has(turn.id) && turn.finished_at !== null),
    )
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

export function draftsOf(drafts: State['drafts'], conversationId: string): Draft[] {
  return Object.values(drafts)
    .filter((draft) => draft.conversation_id === conversationId)
    .sort((a, b) => a.voice.seat - b.voice.seat);
}

const SCOPES = ['all', 'project', 'user'];

function byScope<T extends { id: string; scope: string; created_at: number }>(items: T[]): T[] {
  const place = (each: T) => SCOPES.indexOf(each.scope);
  return items.sort((a, b) => place(a) - place(b) || a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
}

function isAtHand(each: { project_id: string | null }, projectId: string | null): boolean {
  return each.project_id === null || each.project_id === projectId;
}
