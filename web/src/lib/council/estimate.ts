/** What a round will likely cost and how full each mind will be, before it is sent. */
import type { Message, Model, Round, Voice } from '$lib/api/types';

/** What a reply usually comes to: some 700 words. */
const REPLY_TOKENS = 900;
/** Instructions, before anything was said. */
const OPENING_TOKENS = 600;

export interface Expected {
  /** Null when the price is unknown. */
  micros: number | null;
  /** How much of what the model can hold will be taken, 0 to 1. */
  fill: number;
}

export function expected(voice: Voice, model: Model | undefined, rounds: Round[], text: string): Expected {
  const last = lastReply(voice, rounds);
  const before = last?.usage ? last.usage.input_tokens + last.usage.output_tokens : OPENING_TOKENS;
  const input = before + Math.ceil(text.length / 4);
  const fill = model ? Math.min(1, input / model.context_window) : 0;
  return { micros: model ? price(model, input) : null, fill };
}

/** The whole round; null when one voice's price is unknown. */
export function sum(parts: Expected[]): number | null {
  return parts.reduce<number | null>(
    (all, { micros }) => (all === null || micros === null ? null : all + micros),
    0,
  );
}

function lastReply(voice: Voice, rounds: Round[]): Message | undefined {
  return rounds
    .toReversed()
    .flatMap((round) => round.messages.toReversed())
    .find((message) => message.voice?.id === voice.id && message.usage !== null);
}

function price(model: Model, input: number): number | null {
  const { input_micros, output_micros } = model.prices;
  if (input_micros === null || output_micros === null) return null;
  return Math.ceil((input * input_micros + REPLY_TOKENS * output_micros) / 1_000_000);
}
