/**
 * How formulas are recognised: $…$ and \(…\) in a line, $$…$$ and \[…\] on lines of their own.
 *
 * Money is not a formula: "$5 and $10" stays as typed.
 */
import type { MarkdownIt, StateBlock, StateInline } from 'markdown-it';

const LONGEST = 5_000;
const DOLLAR = 0x24;
const BACKSLASH = 0x5c;

export function formulas(md: MarkdownIt): void {
  md.block.ruler.before('fence', 'formula', block, { alt: ['paragraph', 'reference', 'blockquote', 'list'] });
  md.inline.ruler.before('escape', 'formula', inline);
  md.renderer.rules.formula = (tokens, index) => {
    const { content, block } = tokens[index]!;
    const tag = block ? 'div' : 'span';
    const kind = tokens[index]!.markup === 'display' ? 'math display' : 'math';
    return `<${tag} class="${kind}">${md.utils.escapeHtml(content)}</${tag}>`;
  };
}

/** Lines from $$ to $$. A blank line ends the attempt, so that a stray $$ swallows one paragraph and no more. */
function block(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  if (state.sCount[first]! - state.blkIndent >= 4) return false;
  const opening = line(state, first);
  const close = opening.startsWith('$$') ? '$$' : opening.startsWith('\\[') ? '\\]' : null;
  if (close === null || hasTextAfter(opening, close)) return false;
  if (silent) return true;

  let end = first;
  let isClosed = isEnd(opening.slice(2), close);
  while (!isClosed && end + 1 < last && belongs(state, end + 1)) isClosed = isEnd(line(state, ++end), close);

  const lines = Array.from({ length: end - first + 1 }, (_, at) => line(state, first + at));
  state.line = end + 1;
  if (isClosed) pushFormula(state, first, lines.join('\n').trim().slice(2, -2).trim());
  else pushParagraph(state, first, lines.join('\n'));
  return true;
}

function line(state: StateBlock, number: number): string {
  return state.src.slice(state.bMarks[number]! + state.tShift[number]!, state.eMarks[number]);
}

function hasTextAfter(opening: string, close: string): boolean {
  const at = opening.indexOf(close, 2);
  return at >= 0 && opening.slice(at + 2).trim() !== '';
}

function isEnd(text: string, close: string): boolean {
  return text.trimEnd().endsWith(close);
}

function belongs(state: StateBlock, number: number): boolean {
  return !state.isEmpty(number) && state.sCount[number]! >= state.blkIndent;
}

function pushFormula(state: StateBlock, first: number, content: string): void {
  const token = state.push('formula', '', 0);
  token.block = true;
  token.markup = 'display';
  token.content = content;
  token.map = [first, state.line];
}

function pushParagraph(state: StateBlock, first: number, content: string): void {
  state.push('paragraph_open', 'p', 1).map = [first, state.line];
  const words = state.push('inline', '', 0);
  words.content = content.trim();
  words.map = [first, state.line];
  words.children = [];
  state.push('paragraph_close', 'p', -1);
}

function inline(state: StateInline, silent: boolean): boolean {
  const found = at(state.src, state.pos, state.posMax);
  if (found === null) return false;
  if (!silent) {
    const token = state.push('formula', '', 0);
    token.content = found.content.trim();
    token.markup = found.isDisplay ? 'display' : '';
  }
  state.pos = found.end;
  return true;
}

interface Found {
  content: string;
  end: number;
  isDisplay: boolean;
}

function at(text: string, start: number, max: number): Found | null {
  const first = text.charCodeAt(start);
  if (first === BACKSLASH) {
    const next = text[start + 1];
    if (next === '(') return between(text, start, '\\)', max, false);
    if (next === '[') return between(text, start, '\\]', max, true);
    return null;
  }
  if (first !== DOLLAR) return null;
  return text.charCodeAt(start + 1) === DOLLAR
    ? between(text, start, '$$', max, true)
    : dollars(text, start, max);
}

function between(text: string, start: number, close: string, max: number, isDisplay: boolean): Found | null {
  const end = text.indexOf(close, start + 2);
  if (end < 0 || end + 2 > max || end - start > LONGEST) return null;
  const content = text.slice(start + 2, end);
  return content.trim() === '' ? null : { content, end: end + 2, isDisplay };
}

/** Finds a formula between single dollars: no space next to them on the inside, no letter or figure after the second. */
function dollars(text: string, start: number, max: number): Found | null {
  if (/[\s$]/.test(text[start + 1] ?? ' ')) return null;
  const limit = Math.min(max, start + LONGEST);
  for (let end = start + 2; end < limit; end++) {
    if (text.charCodeAt(end) === BACKSLASH) end++;
    else if (text.charCodeAt(end) === DOLLAR) {
      const content = text.slice(start + 1, end);
      const isClosing = !/\s/.test(text[end - 1]!) && !/[\p{L}\p{N}$]/u.test(text[end + 1] ?? ' ');
      return isClosing && !isMoney(content) ? { content, end: end + 1, isDisplay: false } : null;
    }
  }
  return null;
}

/** "5, or 5" between two dollars is an amount and words, not a formula. */
function isMoney(content: string): boolean {
  return /^[\d.,]/.test(content) && /(?<![\\\p{L}])\p{L}{2,}/u.test(content);
}
