/** Persona rules: limits and errors of the form, and who may change a persona. */
import type { PersonaProfile, ModelView, Persona, Project, Ownership, User } from '$lib/api/types';
import { handleOf } from '$lib/council/mentions';
import { plainText } from '$lib/markdown/plainText';

export const INSTRUCTIONS_LIMIT = 20_000;
const FIRST_WORDS = 400;

export const SCOPES: Record<Ownership, string> = { all: 'All', project: 'Project', user: 'Me' };

/** A new one begins with a model that is ready; with the demo only where there is no other. */
export function blank(models: Pick<ModelView, 'key' | 'is_available' | 'is_demo'>[]): PersonaProfile {
  const ready = models.filter((each) => each.is_available);
  const model = (ready.find((each) => !each.is_demo) ?? ready[0])?.key ?? '';
  return { name: '', glyph: '', hue: 4, instructions: '', model, tools: true, effort: null };
}

/** Returns the fault of a persona's name in the server's words; null when it has none. */
export function nameFault(name: string): string | null {
  const clean = name.trim();
  if (!clean) return 'Give it a name.';
  if (/[[\]:"]/.test(clean) || !handleOf(clean)) return 'A name has letters and no [ ] : or ".';
  return null;
}

export function canChange(
  { scope, project_id }: Pick<Persona, 'scope' | 'project_id'>,
  me: Pick<User, 'role'> | null,
  projects: Record<string, Pick<Project, 'role'>>,
): boolean {
  if (scope === 'all') return me?.role === 'admin';
  if (scope === 'user') return true;
  const role = project_id === null ? undefined : projects[project_id]?.role;
  return role !== undefined && role !== 'viewer';
}

/** Its first sentence, for a card. */
export function gistOf(instructions: string): string {
  const words = plainText(instructions, FIRST_WORDS);
  return /^.*?[.!?](?=\s|$)/.exec(words)?.[0] ?? words;
}
