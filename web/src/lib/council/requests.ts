/** Requests about saved tables and default settings. Results come by the stream. */
import { request } from '$lib/api/client';
import type { Defaults, SavedTable, TableSpec } from '$lib/api/types';
import { modeNamed } from './modes';
import type { RoundSettings } from './initialSetting';

export function addTable(
  name: string,
  setting: RoundSettings,
  projectId: string | null,
): Promise<SavedTable> {
  const scope = projectId === null ? 'user' : 'project';
  return request('POST', '/api/tables', { ...written(name, setting), scope, project_id: projectId });
}

export function changeTable(id: string, name: string, setting: RoundSettings): Promise<SavedTable> {
  return request('PUT', `/api/tables/${id}`, written(name, setting));
}

export function removeTable(id: string): Promise<void> {
  return request('DELETE', `/api/tables/${id}`);
}

export function saveDefaults(defaults: Defaults): Promise<Defaults> {
  return request('PUT', '/api/me/defaults', defaults);
}

/** Returns the table to save: as many voices as the mode seats, and a chair only if the mode has a chair. */
export function written(name: string, { minds, mode, visibility, chair, brief }: RoundSettings): TableSpec {
  const { most, hasChair } = modeNamed(mode);
  const closing = hasChair ? { chair, brief } : { chair: null, brief: '' };
  return { name, mode, visibility, voices: minds.slice(0, most), ...closing };
}
