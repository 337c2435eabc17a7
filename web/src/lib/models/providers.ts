/** Models grouped by provider: available ones first, then those that run on this machine. */
import type { ModelView } from '../api/types';

export interface Provider {
  id: string;
  name: string;
  models: ModelView[];
  available: number;
  /** Why none of them can answer, when none can. */
  reason: string | null;
}

export function providersOf(models: ModelView[]): Provider[] {
  const grouped = new Map<string, ModelView[]>();
  for (const model of models) grouped.set(model.provider, [...(grouped.get(model.provider) ?? []), model]);
  return [...grouped]
    .map(([id, together]) => {
      const available = together.filter((each) => each.is_available).length;
      return {
        id,
        name: together[0]!.provider_name,
        models: together,
        available,
        reason: available ? null : (together[0]!.unavailable_reason ?? null),
      };
    })
    .sort((a, b) => rank(b) - rank(a) || a.name.localeCompare(b.name));
}

function rank(provider: Provider): number {
  return 2 * Number(provider.available > 0) + Number(provider.models.some((model) => model.is_local));
}
