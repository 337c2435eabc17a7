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
  const isSameName = own?.display_name === speaker.display_name;
  return `uses ${named(speaker, isSameName)} (${own ? named(own, isSameName) : nameOf(character.model)} ${whyNot(own)})`;
}

/** "GPT-4o", or "OpenAI GPT-4o" where another model has that name. */
function named({ display_name, provider_name }: ModelView, isRepeated: boolean): string {
  return isRepeated ? `${provider_name} ${display_name}` : display_name;
}

/** Returns the reason a persona's own model cannot answer: "has no key". */
function whyNot(model: ModelView | undefined): string {
  if (!model) return 'is unknown';
  return /key/i.test(model.unavailable_reason ?? '') ? 'has no key' : 'is not available';
}
