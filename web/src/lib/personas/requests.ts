/** Requests about personas. Results come by the stream. */
import { request } from '$lib/api/client';
import type { PersonaProfile, Persona, Ownership } from '$lib/api/types';

export function addPersona(
  character: PersonaProfile,
  scope: Ownership,
  projectId: string | null,
): Promise<Persona> {
  return request('POST', '/api/personas', { scope, project_id: projectId, character });
}

export function changePersona(id: string, character: PersonaProfile): Promise<Persona> {
  return request('PUT', `/api/personas/${id}`, { character });
}

export function duplicatePersona(id: string, scope: Ownership, projectId: string | null): Promise<Persona> {
  return request('POST', `/api/personas/${id}/duplicate`, { scope, project_id: projectId });
}

export function removePersona(id: string): Promise<void> {
  return request('DELETE', `/api/personas/${id}`);
}

/** Reads the version of a persona that replied, even when it was changed or deleted since. */
export function readVersion(id: string, version: number): Promise<PersonaProfile> {
  return request('GET', `/api/personas/${id}/versions/${version}`);
}
