/** A receipt as people read it: layers in their order, each piece with a name, why it is there, what it takes. */
import { addressOf } from '$lib/attachments/attachments';
import type { Layer, LeftOut, Prices, Receipt, Segment, Usage } from '$lib/api/types';
import { counted, tokens } from '$lib/format/numbers';

export interface Piece {
  name: string;
  why: string;
  tokens: number;
  /** The provider had it already. */
  isCached: boolean;
  text: string;
  /** What to leave out when it is asked again without this; null when it cannot be left out. */
  without: string | null;
  /** Where it can be read; null when it is nowhere but here. */
  place: PiecePlace | null;
  /** Where it can be seen, if it is a picture. */
  picture: string | null;
}

export type PiecePlace =
  { kind: 'file'; path: string; from: number | null; to: number | null } | { kind: 'round'; number: number };

export interface LayerView {
  layer: Layer;
  name: string;
  /** "3 files", "4 passages" */
  count: string;
  tokens: number;
  pieces: Piece[];
}

export interface Share {
  layer: Layer | 'free';
  /** Of the budget, 0 to 1. */
  part: number;
}

const NAMES: Record<Layer, string> = {
  system: 'System',
  always: 'Always sent',
  rounds: 'Earlier rounds',
  retrieved: 'Found by search',
  tools: 'Tools',
  question: 'The question',
};
const ORDER: Layer[] = ['system', 'always', 'rounds', 'retrieved', 'tools', 'question'];

/** "Ada", by the id of what she asked; empty for what oneself asked, or when it is not known. */
type Asker = (messageId: string) => string;

export function layersOf(receipt: Receipt, asker: Asker = () => ''): LayerView[] {
  const cached = new Set(receipt.segments.slice(0, receipt.cached_segments));
  return ORDER.map((layer) => viewOf(layer, receipt.segments, cached, asker)).filter(
    ({ pieces }) => pieces.length > 0,
  );
}

export function tokensOf(receipt: Receipt): number {
  return sum(receipt.segments);
}

/** The stacked bar: every layer by its part of the budget, and what stayed free. */
export function sharesOf(receipt: Receipt): Share[] {
  const whole = Math.max(receipt.budget_tokens, tokensOf(receipt), 1);
  const shares: Share[] = layersOf(receipt).map(({ layer, tokens }) => ({ layer, part: tokens / whole }));
  const free = 1 - tokensOf(receipt) / whole;
  return free > 0 ? [...shares, { layer: 'free', part: free }] : shares;
}

/** Opened at first: what was looked up, else what was said before, else the question. */
export function openAtFirst(layers: LayerView[]): Layer | null {
  const wanted: Layer[] = ['retrieved', 'always', 'rounds', 'question'];
  return wanted.find((layer) => layers.some((each) => each.layer === layer)) ?? null;
}

/** "75%" of what went in, or nothing when none of it was. */
export function cachedPart(usage: Usage | null): string {
  if (!usage?.cached_tokens || !usage.input_tokens) return '';
  return `${Math.max(1, Math.round((100 * usage.cached_tokens) / usage.input_tokens))}%`;
}

/** What was taken out of this one already, so that it stays out when something else goes too. */
export function takenOut({ left_out }: Receipt): string[] {
  return left_out.flatMap(({ reason, source_id }) => (reason === TAKEN_OUT && source_id ? [source_id] : []));
}

const TAKEN_OUT = 'taken out before it was asked again';

export interface TillLine {
  words: 'read from cache' | 'new' | 'written';
  tokens: number;
  /** Null when its price is not known by itself. */
  micros: number | null;
}

export interface Till {
  lines: TillLine[];
  /** What the cache took off; nothing when it is not known. */
  saved: number;
}

/** What each kind of token came to; only where the parts make up what was charged. */
export function tillOf(usage: Usage, prices: Prices | undefined): Till {
  const { cached_tokens: cached, output_tokens: written } = usage;
  const fresh = Math.max(0, usage.input_tokens - cached);
  const at = (count: number, price: number | null | undefined) =>
    price == null ? (count ? NaN : 0) : Math.round((count * price) / 1_000_000);
  const [kept, read, said] = [
    at(cached, prices?.cached_micros),
    at(fresh, prices?.input_micros),
    at(written, prices?.output_micros),
  ];
  const isWhole = Math.abs(kept + read + said - (usage.cost_micros ?? NaN)) <= 3; // each is rounded by itself
  const line = (words: TillLine['words'], count: number, micros: number) => ({
    words,
    tokens: count,
    micros: isWhole ? micros : null,
  });
  return {
    lines: [
      ...(cached ? [line('read from cache', cached, kept)] : []),
      line('new', fresh, read),
      line('written', written, said),
    ],
    saved: isWhole && cached ? Math.max(0, at(cached, prices?.input_micros) - kept) : 0,
  };
}

/** "docs/plan.md:3-9", "photo.png", "Round 3", "A passage" */
export function leftOutName(left: LeftOut): string {
  if (left.name) return capital(left.name);
  if (left.round_number !== null) return `Round ${left.round_number}`;
  if (left.layer === 'rounds') return 'Earlier rounds';
  return (
    { always: 'A file that is always sent', retrieved: 'A passage' }[left.layer as string] ??
    NAMES[left.layer]
  );
}

function viewOf(layer: Layer, segments: Segment[], cached: Set<Segment>, asker: Asker): LayerView {
  const mine = segments.filter((each) => each.layer === layer);
  const questions = firstOfEachRound(mine);
  const pieces = mine
    .filter((each) => !isOpening(each))
    .map((each) => pieceOf(each, layer === 'rounds' && questions.has(each), cached.has(each), asker));
  return { layer, name: NAMES[layer], count: countOf(layer, mine, pieces), tokens: sum(mine), pieces };
}

/** A line that only announces what follows. */
function isOpening(segment: Segment): boolean {
  return segment.layer === 'retrieved' && segment.source_id === null;
}

function countOf(layer: Layer, segments: Segment[], pieces: Piece[]): string {
  if (layer === 'always') return counted(pieces.length, 'file');
  if (layer === 'retrieved') return counted(pieces.length, 'passage');
  if (layer === 'rounds') return String(new Set(segments.map((each) => each.round_number)).size);
  return pieces.length > 1 ? String(pieces.length) : '';
}

function pieceOf(segment: Segment, isQuestion: boolean, isCached: boolean, asker: Asker): Piece {
  const { text, tokens, source_id } = segment;
  const isRemovable =
    segment.reason === 'attached' || ['always', 'rounds', 'retrieved'].includes(segment.layer);
  const canGo = source_id !== null && !isQuestion && isRemovable;
  return {
    ...wordsFor(segment, isQuestion, asker),
    tokens,
    isCached,
    text,
    without: canGo ? source_id : null,
    place: placeOf(segment),
    picture: segment.picture && source_id ? addressOf(source_id, '?inline=true') : null,
  };
}

const WHOLE = /^The file (.+), whole/;
const LINES = /^From (.+), lines (\d+) to (\d+):/;
/** The mark by which a model is asked to cite it. */
const MARK = /^[^\n]*\[([^[\]\n]+):(\d+)(?:-(\d+))?\]/;
const TALK = /^From the conversation "(.*)", round (\d+)/;

function placeOf({ layer, text, round_number, name }: Segment): PiecePlace | null {
  if (round_number !== null && (layer === 'rounds' || layer === 'retrieved'))
    return { kind: 'round', number: round_number };
  const whole = layer === 'always' ? name || WHOLE.exec(text)?.[1] : undefined;
  if (whole) return { kind: 'file', path: whole, from: null, to: null };
  const lines = layer === 'retrieved' && !TALK.test(text) ? (LINES.exec(text) ?? MARK.exec(text)) : null;
  if (!lines) return null;
  const [, path = '', from, to = from] = lines;
  return { kind: 'file', path, from: Number(from), to: Number(to) };
}

function wordsFor(segment: Segment, isQuestion: boolean, asker: Asker): { name: string; why: string } {
  const { layer, text, reason, round_number } = segment;
  const name = capital(segment.name);
  const who = asker(segment.source_id ?? '');
  switch (layer) {
    case 'always':
      return { name: segment.name || (WHOLE.exec(text)?.[1] ?? 'A file'), why: reason };
    case 'retrieved':
      return { name: name || passageName(segment), why: matchIn(reason) };
    case 'rounds':
      return {
        name: `Round ${round_number}, ${segment.name || speakerOf(segment, isQuestion, who)}`,
        why: reason,
      };
    case 'question':
      return { name: questionPart(segment, who), why: /^(asked now|attached)/.test(reason) ? reason : '' };
    default:
      return { name: capital(reasonIn(reason)), why: '' };
  }
}

/** Reasons of the server that read otherwise here; the first is in receipts that were written before. */
const REASONS: Record<string, string> = {
  'who it is and how the table talks': 'who answers, and how the conversation works',
  'brought back': 'from the branch',
  'where we are': 'round number and title',
  'said in this round': 'reply of this round',
  'to be continued': 'the reply so far',
  'how to go on': 'request to continue',
  'how to differ': 'request for a shorter or longer reply',
  'what is missing': 'rounds of the branch left out',
};

function reasonIn(reason: string): string {
  return REASONS[reason] ?? reason.replace(/^what to do: /, 'instructions: ');
}

/** "docs/plan.md:3-9", "Trains, round 2", "Round 4" */
function passageName(segment: Segment): string {
  const place = placeOf(segment);
  if (place?.kind === 'round') return `Round ${place.number}`;
  if (place) return `${place.path}:${place.from === place.to ? place.from : `${place.from}-${place.to}`}`;
  const talk = TALK.exec(segment.text);
  return talk ? `${talk[1]}, round ${talk[2]}` : 'A passage';
}

/** "strong match · 3 of 4 words"; what was kept before that began with a number that says nothing by itself. */
function matchIn(reason: string): string {
  return reason.replace(/^hit [\d.]+(?:: )?/, '');
}

function speakerOf({ role, text, reason }: Segment, isQuestion: boolean, who: string): string {
  if (isQuestion) return who ? `${who}’s question` : 'the question';
  if (reason in ABOUT) return ABOUT[reason]!;
  if (role === 'assistant') return 'its own reply';
  return /^\[([^\]]{1,80})\]: /.exec(text)?.[1] ?? 'a reply';
}

function questionPart({ reason, name }: Segment, who: string): string {
  if (reason === 'asked now') return who ? `${who}’s message` : 'Your message';
  return name || capital(reasonIn(reason));
}

/** What a question refers to stands before it, by the reason the server gives. */
const ABOUT: Record<string, string> = { 'replied to': 'what it replies to', quoted: 'what it quotes' };

/** In each round the question comes first, after what was brought along with it and what it refers to. */
function firstOfEachRound(segments: Segment[]): Set<Segment> {
  const seen = new Map<number | null, Segment>();
  for (const each of segments)
    if (!each.reason.startsWith('attached') && !(each.reason in ABOUT) && !seen.has(each.round_number))
      seen.set(each.round_number, each);
  return new Set(seen.values());
}

/** "round 4" → "Round 4"; a path keeps its letters, and one line is named once. */
function capital(words: string): string {
  if (/[/.]/.test(words)) return words.replace(/:(\d+)-\1$/, ':$1');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function sum(parts: { tokens: number }[]): number {
  return parts.reduce((all, each) => all + each.tokens, 0);
}

/** "budget 32,000 of the model's 200,000" */
export function budgetWords(budget: number, window: number | undefined): string {
  return `budget ${tokens(budget)}${window ? ` of the model’s ${tokens(window)}` : ''}`;
}
