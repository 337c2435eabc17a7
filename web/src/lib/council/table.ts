/** The table before it is sent: model keys in the order of their seats, as the server will seat them. */
import type { Model, Voice } from '$lib/api/types';

export const SEATS = 8;

/** The same model twice becomes two voices with names of their own. */
export function seated(keys: string[], model: (key: string) => Model | undefined): Voice[] {
  const seen = new Map<string, number>();
  return keys.map((key, place) => {
    const nth = seen.get(key) ?? 0;
    seen.set(key, nth + 1);
    const name = model(key)?.display_name ?? key.slice(key.indexOf(':') + 1);
    return {
      id: `${key}:${nth}`,
      seat: place + 1,
      name: nth === 0 ? name : `${name} ${nth + 1}`,
      model: key,
      persona_id: null,
      persona_version: null,
    };
  });
}

/** Who sits down when nobody was chosen: the project's own choice, else a model of each house, else anything. */
export function firstTable(wanted: string[], models: Model[], most: number = 3): string[] {
  const available = models.filter((model) => model.is_available);
  const known = wanted.filter((key) => available.some((model) => model.key === key));
  if (known.length) return known.slice(0, SEATS);
  const houses = new Map<string, string>();
  for (const model of available)
    if (!model.is_demo && !houses.has(model.provider)) houses.set(model.provider, model.key);
  const chosen = [...houses.values()].slice(0, most);
  return chosen.length ? chosen : available.slice(0, 1).map((model) => model.key);
}
