/** The models one can invite: grouped by who serves them, those that cannot come last and with the reason. */
import type { Model } from '$lib/api/types';
import { money, tokens } from '$lib/conversation/numbers';

export interface Group {
  name: string;
  models: Model[];
}

export function groupsOf(models: Model[], typed: string): Group[] {
  const groups = new Map<string, Model[]>();
  for (const model of models.filter((each) => matches(each, typed))) {
    const group = groups.get(model.provider_name) ?? [];
    group.push(model);
    groups.set(model.provider_name, group);
  }
  return [...groups]
    .map(([name, group]) => ({ name, models: group.toSorted(availableFirst) }))
    .toSorted((a, b) => availableFirst(a.models[0]!, b.models[0]!));
}

/** Every word typed is somewhere in its names. */
function matches(model: Model, typed: string): boolean {
  const names = `${model.display_name} ${model.model_id} ${model.provider_name} ${model.tier}`.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => names.includes(word));
}

function availableFirst(a: Model, b: Model): number {
  return Number(b.is_available) - Number(a.is_available);
}

/** "local · 32k", "balanced · 128k" */
export function factsOf(model: Model): string {
  return `${model.is_demo ? 'demo' : model.is_local ? 'local' : model.tier} · ${tokens(model.context_window)}`;
}

/** What a million words out would cost is no help; a typical reply is 700 words from a few pages. */
export function typicalCost(model: Model): string {
  const { input_micros, output_micros } = model.prices;
  if (input_micros === null || output_micros === null) return '';
  return money(Math.round((input_micros * 4_000 + output_micros * 900) / 1_000_000));
}
