/** What a synthesis says in a form that can be drawn, and what the map adds up to. */
import type { Message, Outline, Round, Stance } from '$lib/api/types';

/** The outline made for this synthesis, with its map; else what its own text tells; null when neither can be read. */
export function outlineOf(round: Round, synthesis: Message): Outline | null {
  const made = round.messages
    .filter((message) => message.step === 'outline' && message.findings?.outline)
    .filter((message) => message.turn_id === synthesis.turn_id)
    .at(-1)?.findings?.outline;
  const told = synthesis.findings?.outline ?? null;
  if (!made) return told;
  return { ...made, headline: made.headline || (told?.headline ?? '') };
}

/** The map could not be read: it can be asked for again. */
export function failedOutline(round: Round, synthesis: Message): Message | null {
  const tried = round.messages.filter(
    (message) => message.step === 'outline' && message.turn_id === synthesis.turn_id,
  );
  const last = tried.at(-1);
  return last && !last.findings?.outline ? last : null;
}

const WEIGHTS: Record<Stance, number> = { agrees: 1, partly: 0.5, disagrees: 0 };

/** How much of what was said is agreed on, from 0 to 1; those who are silent do not count. */
export function consensus(outline: Outline): number | null {
  const stances = outline.map.flatMap((topic) => topic.cells.map((cell) => cell.stance));
  if (!stances.length) return null;
  return stances.reduce((sum, stance) => sum + WEIGHTS[stance], 0) / stances.length;
}

/** "having read all four", "having read three of four" */
export function havingRead(heard: number, asked: number): string {
  const words = ['none', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'];
  if (heard === asked) return heard === 2 ? 'having read both' : `having read all ${words[heard] ?? heard}`;
  return `having read ${words[heard] ?? heard} of ${words[asked] ?? asked}`;
}
