/** What each voice sees of the others. */
import type { Visibility } from '$lib/api/types';

export interface Choice {
  id: Visibility;
  name: string;
  sentence: string;
}

export const VISIBILITIES: Choice[] = [
  { id: 'open', name: 'Open table', sentence: 'Everyone reads what was said before' },
  { id: 'own_lane', name: 'Each alone', sentence: 'Each mind sees only you and itself' },
  { id: 'chosen', name: 'Chosen replies', sentence: 'Of each round, only the reply marked best' },
];

export function visibilityNamed(id: Visibility): Choice {
  return VISIBILITIES.find((choice) => choice.id === id) ?? VISIBILITIES[0]!;
}
