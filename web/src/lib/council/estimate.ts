/** Estimates: what a round would cost and how much of each context window it fills, computed by the server before sending. */
import type { Estimate, Voice } from '$lib/api/types';
import { listed, totalOf, type Total } from '$lib/format/numbers';
import { leftOutName, whyLeftOut } from '$lib/format/reasons';

export interface Expected {
  /** Null when the price is unknown. */
  micros: number | null;
  /** That go in. */
  tokens: number;
  /** The part of the token budget that will be used, from 0 to 1. */
  fill: number;
  /** The reason this voice cannot be asked; null when it can. */
  problem: string | null;
}

/** The expected cost of an answer or of the synthesis. */
export interface Cost extends Expected {
  voice: Voice;
  isClosing: boolean;
}

/** Lists the cost of each answer in order, then of the synthesis. */
export function costsOf(
  parts: Expected[],
  voices: Voice[],
  closing: Expected | undefined,
  chair: Voice | null,
): Cost[] {
  const answers = parts.map((part, n) => ({ ...part, voice: voices[n]!, isClosing: false }));
  return closing && chair ? [...answers, { ...closing, voice: chair, isClosing: true }] : answers;
}

/** Lists the expected cost of each voice; empty while the estimate is for another table. */
export function partsOf(
  estimate: Pick<Estimate, 'items' | 'cost_micros'> | null,
  voices: Voice[],
): Expected[] {
  const items = estimate?.items ?? [];
  const isSame = items.length === voices.length && items.every(({ voice }, n) => voice.id === voices[n]!.id);
  if (!isSame) return [];
  return items.map(expectedOf);
}

function expectedOf({
  cost_micros,
  input_tokens,
  budget_tokens,
  problem,
}: Estimate['items'][number]): Expected {
  return {
    micros: problem ? 0 : cost_micros,
    tokens: input_tokens,
    fill: problem ? 1 : Math.min(1, input_tokens / Math.max(1, budget_tokens)),
    problem,
  };
}

/** Names files a voice does not get: "Alpha is not shown long.txt: over the budget." Pictures are handled elsewhere. */
export function notShown(estimate: Pick<Estimate, 'items'> | null): string {
  const files = new Map<string, string[]>();
  for (const { voice, left_out } of estimate?.items ?? []) {
    for (const left of left_out) {
      if (left.reason === 'no_vision') continue;
      const what = `${leftOutName(left)}: ${whyLeftOut(left).replace(/\.$/, '')}.`;
      files.set(what, [...(files.get(what) ?? []), voice.name]);
    }
  }
  return [...files]
    .map(([what, who]) => `${listed(who)} ${who.length === 1 ? 'is' : 'are'} not shown ${what}`)
    .join(' ');
}

/** Returns the tokens and budget of the voice for which always-sent files take the largest part. */
export function fullest(items: Estimate['items']): { always: number; budget: number } | null {
  const parts = items
    .filter(({ always_tokens, problem }) => always_tokens > 0 && !problem)
    .map(({ always_tokens, budget_tokens }) => ({ always: always_tokens, budget: budget_tokens }));
  return parts.sort((a, b) => b.always / b.budget - a.always / a.budget)[0] ?? null;
}

/** Returns the expected cost of the synthesis; undefined when the estimate is for another chair. */
export function closingOf(
  estimate: Pick<Estimate, 'chair'> | null,
  chair: Voice | null,
): Expected | undefined {
  const found = estimate?.chair;
  return found && found.voice.id === chair?.id ? expectedOf(found) : undefined;
}

/** The whole round; undefined while nothing is known about it. */
export function sum(parts: Expected[]): Total | undefined {
  return parts.length ? totalOf(parts.map(({ micros }) => micros)) : undefined;
}
