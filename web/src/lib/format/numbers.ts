/** Numbers as people read them: tokens, money, time, and small counts in words. */
import type { Usage } from '$lib/api/types';

const exact = new Intl.NumberFormat('en');

/** 912, 1,465, 21.8k, 128k, 1.2M */
export function tokens(count: number): string {
  if (count < 5_000) return exact.format(count);
  if (count < 99_950) return `${(count / 1_000).toFixed(1)}k`;
  if (count < 999_500) return `${Math.round(count / 1_000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** Formats an amount paid: "$0.0348", "$48.20"; "free" for zero and "price unknown" for null. */
export function money(micros: number | null): string {
  if (micros === null) return 'price unknown';
  if (micros === 0) return 'free';
  if (micros < 100) return 'under $0.0001';
  const dollars = micros / 1_000_000;
  return `$${dollars < 1 ? dollars.toFixed(4) : exact2.format(dollars)}`;
}

const exact2 = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** Formats an estimated cost: "$0.08", "$0.004". */
export function roughMoney(micros: number): string {
  if (micros === 0) return 'free';
  const dollars = micros / 1_000_000;
  if (dollars < 0.001) return 'under $0.001';
  return `$${dollars < 0.01 ? dollars.toFixed(3) : exact2.format(dollars)}`;
}

/** A sum of prices of which some may be unknown. */
export interface Total {
  /** The sum of the prices that are known. */
  micros: number;
  isPartial: boolean;
}

export function totalOf(prices: (number | null)[]): Total {
  const known = prices.filter((price) => price !== null);
  return { micros: known.reduce((all, price) => all + price, 0), isPartial: known.length < prices.length };
}

/** "$0.0348", "at least $0.0348" where a part is unknown, "price unknown" where nothing is known. */
export function totalMoney(total: Total, write: (micros: number) => string = money): string {
  if (!total.isPartial) return write(total.micros);
  return total.micros === 0 ? money(null) : `at least ${write(total.micros)}`;
}

/** 0.3 s, 11.4 s, 2 min 5 s */
export function duration(ms: number): string {
  if (ms < 99_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  return seconds % 60 ? `${Math.floor(seconds / 60)} min ${seconds % 60} s` : `${seconds / 60} min`;
}

/** The parts of a reply's footer: 21.8k in, 912 out, $0.0348, 11.4 s. */
export function meter(usage: Usage | null): string[] {
  if (usage === null) return [];
  if (usage.input_tokens + usage.output_tokens === 0)
    return usage.cost_micros ? [money(usage.cost_micros)] : [];
  return [
    `${tokens(usage.input_tokens)} tokens in`,
    `${tokens(usage.output_tokens)} out`,
    money(usage.cost_micros),
    duration(usage.latency_ms),
  ];
}

export function wordCount(text: string): number {
  return text.trim() === '' ? 0 : text.trim().split(/\s+/).length;
}

/** "1 word", "240 words" */
export function counted(count: number, noun: string): string {
  return `${exact.format(count)} ${noun}${count === 1 ? '' : 's'}`;
}

const NAMES = ['No', 'One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight'];
const ORDINALS = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth'];

/** Two; 12 from nine on. */
export function inWords(count: number): string {
  return NAMES[count] ?? exact.format(count);
}

/** "The Sage, The Skeptic and The Strategist" */
export function listed(names: string[]): string {
  return names.length < 2 ? (names[0] ?? '') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** second; 12th from nine on. */
export function ordinal(place: number): string {
  return ORDINALS[place - 1] ?? `${place}th`;
}

/** 9:42 today (as the language writes hours), 3 June 10:42 this year, 3 June 2024 before. */
export function clock(at: number, now: number = Date.now(), locale?: string): string {
  const [then, today] = [new Date(at), new Date(now)];
  const time = then.toLocaleTimeString(locale, { hour: 'numeric', minute: '2-digit' });
  if (then.toDateString() === today.toDateString()) return time;
  const isThisYear = then.getFullYear() === today.getFullYear();
  const day = then.toLocaleDateString(locale, {
    day: 'numeric',
    month: 'long',
    ...(!isThisYear && { year: 'numeric' }),
  });
  return isThisYear ? `${day}, ${time}` : day;
}
