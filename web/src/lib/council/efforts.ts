/** Thinking effort: names, and the items of its menu. */
import type { Effort } from '$lib/api/types';
import type { MenuItem } from '$lib/ui/menu';
import type { Mind } from './minds';

const NAMES: Record<Effort, string> = { off: 'Off', low: 'Low', medium: 'Medium', high: 'High' };

/** The name for no effort set: the model decides. */
export const AUTOMATIC = 'Automatic';

export function effortName(effort: Effort | null): string {
  return effort === null ? AUTOMATIC : NAMES[effort];
}

/** "Thinking: high", for a place where the word alone would not be understood. */
export function thinkingWords(effort: Effort | null): string {
  return `Thinking: ${effortName(effort).toLowerCase()}`;
}

/** Automatic first, then what the model has. */
export function effortsToChoose(efforts: Effort[]): { value: Effort | null; label: string }[] {
  return [null, ...efforts].map((value) => ({ value, label: effortName(value) }));
}

/** Returns the same minds, with this effort for the mind in this place. */
export function thinking(minds: Mind[], place: number, effort: Effort | null): Mind[] {
  return minds.map((mind, n) => (n === place ? { ...mind, effort } : mind));
}

export function effortItems(
  efforts: Effort[],
  chosen: Effort | null,
  choose: (effort: Effort | null) => void,
): MenuItem[] {
  return effortsToChoose(efforts).map(({ value, label }) => ({
    label,
    checked: value === chosen,
    run: () => choose(value),
  }));
}
