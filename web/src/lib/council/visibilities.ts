/** Visibilities: what each voice sees of the others' replies. */
import type { Visibility } from '$lib/api/types';

export interface Choice {
  id: Visibility;
  name: string;
  sentence: string;
}

export const VISIBILITIES: Choice[] = [
  { id: 'open', name: 'Everyone sees all', sentence: 'Each voice reads everything said before' },
  { id: 'own_lane', name: 'Each sees only you', sentence: 'Each voice reads your messages and its own' },
  { id: 'chosen', name: 'Only best replies', sentence: 'Of each round, only the reply marked best' },
];

export function visibilityNamed(id: Visibility): Choice {
  return VISIBILITIES.find((choice) => choice.id === id) ?? VISIBILITIES[0]!;
}
