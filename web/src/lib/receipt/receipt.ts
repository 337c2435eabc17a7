/** A receipt as people read it: layers in their order, each piece with a name, why it is there, what it takes. */
import { addressOf } from '$lib/attachments/attachments';
import type { Layer, LeftOut, Prices, Receipt, Segment, SegmentReason, Usage } from '$lib/api/types';
import { counted, tokens } from '$lib/format/numbers';
import { fileName, leftOutName, otherConversation, whySent } from '$lib/format/reasons';

export interface Piece {
  name: string;
  why: string;
  tokens: number;
  /** True when the provider read this piece from its cache. */
  isCached: boolean;
  text: string;
  /** The source to leave out when the question is asked again without this piece; null when it cannot be left out. */
  without: string | null;
  /** The file or round that holds this text; null when only the receipt holds it. */
  place: PiecePlace | null;
  /** The address of the picture; null when the piece is no picture. */
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
  /** The part of the budget this layer takes, or leaves free, from 0 to 1. */
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

/** Returns the sources the user removed before this reply, so that they stay out when another is removed. */
export function takenOut({ left_out }: Receipt): string[] {
  return left_out.flatMap(({ reason, source_id }) =>
    reason === 'removed_by_user' && source_id ? [source_id] : [],
  );
}

export interface TillLine {
  words: 'read from cache' | 'new' | 'written';
  tokens: number;
  /** The cost of these tokens; null when their price is not known by itself. */
  micros: number | null;
}

export interface Till {
  lines: TillLine[];
  /** The amount the cache saved; 0 when it is not known. */
  saved: number;
}

/** Lists the cost of each kind of token; a cost is null when the parts do not add up to the amount charged. */
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
export function leftOutTitle(left: LeftOut): string {
  return fileName(left.location) || capital(leftOutName(left));
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
  return segment.reason === 'search_introduction';
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

function placeOf({ layer, round_number, location }: Segment): PiecePlace | null {
  if (location?.path)
    return { kind: 'file', path: location.path, from: location.start_line, to: location.end_line };
  if (round_number !== null && (layer === 'rounds' || layer === 'retrieved'))
    return { kind: 'round', number: round_number };
  return null;
}

function wordsFor(segment: Segment, isQuestion: boolean, asker: Asker): { name: string; why: string } {
  const { layer, location, reason, round_number } = segment;
  const who = asker(segment.source_id ?? '');
  const why = whySent(segment);
  switch (layer) {
    case 'always':
      return { name: fileName(location) || 'A file', why };
    case 'retrieved':
      return { name: passageName(segment), why };
    case 'rounds':
      return { name: `Round ${round_number}, ${partOfRound(segment, isQuestion, who)}`, why };
    case 'question':
      return { name: questionPart(segment, who), why: HAS_NAME_OF_ITS_OWN.includes(reason) ? why : '' };
    default:
      return { name: capital(why), why: '' };
  }
}

/** The other parts of a question are named by their reason. */
const HAS_NAME_OF_ITS_OWN: SegmentReason[] = ['asked_now', 'attached', 'attached_not_shown'];

/** "docs/plan.md:3-9", "Trains, round 2", "Round 4" */
function passageName({ location, round_number }: Segment): string {
  const name = fileName(location) || capital(otherConversation(location));
  return name || (round_number === null ? 'A passage' : `Round ${round_number}`);
}

/** "photo.png", "Beta", "the question", "what it quotes" */
function partOfRound({ role, location, reason }: Segment, isQuestion: boolean, who: string): string {
  const name = fileName(location) || location?.speaker;
  if (name) return name;
  if (isQuestion) return who ? `${who}’s question` : 'the question';
  return ABOUT[reason] ?? (role === 'assistant' ? 'its own reply' : 'a reply');
}

function questionPart(segment: Segment, who: string): string {
  if (segment.reason === 'asked_now') return who ? `${who}’s message` : 'Your message';
  return fileName(segment.location) || segment.location?.speaker || capital(whySent(segment));
}

/** Names for the pieces that stand before a question because it refers to them. */
const ABOUT: Partial<Record<SegmentReason, string>> = {
  replied_to: 'what it replies to',
  quoted: 'what it quotes',
};

/** Returns the first recent segment of each round, which is its question. */
function firstOfEachRound(segments: Segment[]): Set<Segment> {
  const seen = new Map<number | null, Segment>();
  for (const each of segments)
    if (each.reason === 'recent' && !seen.has(each.round_number)) seen.set(each.round_number, each);
  return new Set(seen.values());
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function sum(parts: { tokens: number }[]): number {
  return parts.reduce((all, each) => all + each.tokens, 0);
}

/** "budget 32,000 of the model's 200,000" */
export function budgetWords(budget: number, window: number | undefined): string {
  return `budget ${tokens(budget)}${window ? ` of the model’s ${tokens(window)}` : ''}`;
}
