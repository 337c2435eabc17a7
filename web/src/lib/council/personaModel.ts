/** The model that answers for a persona, as a sentence: its own, or another and why. */
import type { ModelView, Persona } from '$lib/api/types';
import { nameOf, speakerFor } from './table';

/** "Claude Sonnet 4.6", or "uses GPT-6.1 Sol (Claude Sonnet 4.6 has no key)". */
export function personaModelText({ character }: Pick<Persona, 'character'>, models: ModelView[]): string {
  const speaker = speakerFor({ character }, models);
  if (!speaker) return 'not available: no model is ready yet';
  if (speaker.key === character.model) return speaker.display_name;
  if (!character.model) return `uses ${speaker.display_name}`;
  const own = models.find((model) => model.key === character.model);
  return `uses ${speaker.display_name} (${own?.display_name ?? nameOf(character.model)} ${whyNot(own)})`;
}

/** Why a persona's own model does not answer for it: "has no key". */
function whyNot(model: ModelView | undefined): string {
  if (!model) return 'is unknown';
  return /key/i.test(model.unavailable_reason ?? '') ? 'has no key' : 'is not available';
}
