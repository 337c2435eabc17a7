/** A voice a person can ask for: a model, or a persona that answers through a model. */
import type { ModelView, Voice, VoiceRef } from '$lib/api/types';
import { money, tokens } from '$lib/format/numbers';
import { TIERS } from '$lib/models/tiers';

/** A model, or a persona that speaks through its model (or, both named, through another). */
export type Mind = VoiceRef;

export const ofModel = (model: string): Mind => ({ model, persona_id: null, effort: null });
export const ofPersona = (persona_id: string): Mind => ({ model: null, persona_id, effort: null });

/** Returns the model or persona of a voice, so that it can be asked again. */
export function mindOf({ model, persona_id, effort }: Pick<Voice, 'model' | 'persona_id' | 'effort'>): Mind {
  return { ...(persona_id === null ? ofModel(model) : ofPersona(persona_id)), effort };
}

/** Returns a key that is equal for equal minds. */
export function keyOf({ model, persona_id }: Mind): string {
  return persona_id === null ? (model ?? '') : `persona:${persona_id}${model === null ? '' : `:${model}`}`;
}

/** Counts the minds by key. */
export function timesOf(minds: Mind[]): Record<string, number> {
  const times: Record<string, number> = {};
  for (const key of minds.map(keyOf)) times[key] = (times[key] ?? 0) + 1;
  return times;
}

/** "local · 32k", "balanced · 128k" */
export function factsOf(model: ModelView): string {
  return `${model.is_demo ? 'demo' : model.is_local ? 'local' : TIERS[model.tier]} · ${tokens(model.context_window)}`;
}

/** Formats the cost of a typical reply (700 words from a few pages), which helps more than a price per million. */
export function typicalCost(model: ModelView): string {
  const { input_micros, output_micros } = model.prices;
  if (input_micros === null || output_micros === null) return '';
  return money(Math.round((input_micros * 4_000 + output_micros * 900) / 1_000_000));
}
