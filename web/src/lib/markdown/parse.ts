/**
 * Text into blocks that stay put while more text arrives.
 *
 * A block is a top-level piece: a paragraph, a list, a table, a program. Text that is added can change the last
 * block only, so parsing goes on from there and every earlier block is the very same object as before. The one
 * exception is a link defined further down ("[1]: https://…"): while a text has such definitions it is split
 * again from its beginning, and blocks with a bracket in them are written again when the definitions change.
 *
 * Raw HTML is text. Addresses other than http, https and mailto are text. Images are not fetched: their place
 * says where they would have come from. What comes out is still untrusted: sanitise.ts has the last word.
 */
import MarkdownIt, { type MarkdownIt as Reader, type RendererRule, type Token } from 'markdown-it';
import { citations } from './citations';
import { formulas } from './formulas';
import { destination, hostToShow } from './links';
import { withoutInvisible } from './invisibleCharacters';

export type Block =
  | { kind: 'html'; source: string; html: string }
  | { kind: 'code'; source: string; label: string; language: string; text: string; isClosed: boolean }
  | { kind: 'plain'; source: string };

export interface Parsed {
  text: string;
  blocks: Block[];
  /** The start of the last block: before it nothing can change any more. */
  settled: { blocks: number; end: number };
  definitions: string;
}

/** The meaning of a line break within a paragraph: a model wraps its lines, a person means the breaks. */
export type Breaks = 'wrapped' | 'meant';

export const NOTHING: Parsed = { text: '', blocks: [], settled: { blocks: 0, end: 0 }, definitions: '{}' };

// Past these a text is shown as it was typed: formatting it would hold up the page.
const LONGEST_TEXT = 400_000;
const LONGEST_BLOCK = 20_000;
const LONGEST_MS = 400;
const MOST_BLOCKS = 1_500;

type References = Record<string, { title: string; href: string }>;

export function parse(
  raw: string,
  before: Parsed = NOTHING,
  now: () => number = () => performance.now(),
  breaks: Breaks = 'wrapped',
): Parsed {
  const text = withoutInvisible(raw);
  if (text === before.text) return before;
  if (text.length > LONGEST_TEXT) return asTyped(text);

  const grown = text.startsWith(before.text) ? before.settled : NOTHING.settled;
  const tail = split(text, grown.end);
  const from = tail.definitions === '{}' ? grown : NOTHING.settled;
  const { pieces, references, definitions } = from === grown ? tail : split(text, 0);
  const deadline = now() + LONGEST_MS;
  const blocks = before.blocks.slice(0, from.blocks);
  const room = MOST_BLOCKS - blocks.length;
  for (const piece of pieces.slice(0, room)) {
    const known = before.blocks[blocks.length];
    const isKnown =
      known?.source === piece.source && (definitions === before.definitions || !piece.source.includes('['));
    blocks.push(isKnown ? known : toBlock(piece, references, now() > deadline, breaks));
  }
  const rest = pieces[room];
  if (rest) blocks.push({ kind: 'plain', source: text.slice(rest.start) });
  const last = rest ?? pieces.at(-1);
  const settled = last && definitions === '{}' ? { blocks: blocks.length - 1, end: last.start } : from;
  return { text, blocks, settled, definitions };
}

/** The whole text as the reader sees it. */
export function tokensOf(raw: string): Token[] {
  return md.parse(withoutInvisible(raw), {});
}

interface Piece {
  source: string;
  start: number;
  token: Token;
}

interface Split {
  pieces: Piece[];
  references: References;
  definitions: string;
}

function split(whole: string, from: number): Split {
  const text = whole.slice(from);
  const tokens: Token[] = [];
  const references: References = {};
  md.block.parse(text, md, { references }, tokens);
  const lines = lineStarts(text);
  const pieces = tokens
    .filter((token) => token.level === 0 && token.nesting >= 0 && token.map)
    .map((token) => {
      const start = lines[token.map![0]] ?? text.length;
      const source = text.slice(start, lines[token.map![1]] ?? text.length);
      // Blank lines at the end say nothing, except in a program that is not closed yet.
      return { token, source: token.type === 'fence' ? source : source.trimEnd(), start: from + start };
    });
  return { pieces, references, definitions: JSON.stringify(references) };
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

function toBlock({ source, token }: Piece, references: References, isLate: boolean, breaks: Breaks): Block {
  if (token.type === 'fence') return codeBlock(source, token);
  if (isLate || source.length > LONGEST_BLOCK) return { kind: 'plain', source };
  return { kind: 'html', source, html: render(source, references, breaks) };
}

function render(source: string, references: References, breaks: Breaks): string {
  const env = { references: { ...references } };
  return md.renderer.render(md.parse(source, env), { ...md.options, breaks: breaks === 'meant' }, env);
}

function codeBlock(source: string, token: Token): Block {
  const { language, label } = describe(token.info);
  const written = source.trimEnd();
  const lastLine = written.slice(written.lastIndexOf('\n') + 1).trim();
  const isClosed = written.includes('\n') && lastLine.startsWith(token.markup) && /^(`+|~+)$/.test(lastLine);
  return { kind: 'code', source, language, label, text: token.content.replace(/\n$/, ''), isClosed };
}

/** "ts gateway/issue.ts" names its language and its file; the file is the better caption. */
function describe(info: string): { language: string; label: string } {
  const [language = '', ...rest] = md.utils.unescapeAll(info).trim().split(/\s+/);
  const file = rest.join(' ').replace(/^\{?(?:title|file(?:name)?)=["']?([^"'}]*)["']?\}?$/, '$1');
  const colon = language.indexOf(':');
  if (colon > 0) return { language: language.slice(0, colon), label: language.slice(colon + 1) };
  return { language, label: file || language };
}

function asTyped(text: string): Parsed {
  return { text, blocks: [{ kind: 'plain', source: text }], settled: NOTHING.settled, definitions: '{}' };
}

const md = reader();

function reader(): Reader {
  const made = new MarkdownIt({
    html: false,
    linkify: true,
    breaks: false,
    typographer: false,
    maxNesting: 40,
  });
  made.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
  made.validateLink = (address) => destination(address) !== null;
  made.use(formulas);
  made.use(citations);
  made.core.ruler.push('link_hosts', (state) =>
    state.tokens.forEach((token) => showHosts(token.children ?? [])),
  );
  made.core.ruler.push('tasks', (state) => markTasks(state.tokens));
  made.core.ruler.push('headings', (state) => state.tokens.forEach(lowerHeading));
  Object.assign(made.renderer.rules, rules(made));
  return made;
}

function rules(made: Reader): Record<string, RendererRule> {
  const { escapeHtml } = made.utils;
  const cell =
    (tag: string): RendererRule =>
    (tokens, index) => {
      // markdown-it writes alignment as a style attribute, which the page's policy forbids.
      const side = /right|center/.exec(String(tokens[index]!.attrGet('style') ?? ''))?.[0];
      return side ? `<${tag} class="${side}">` : `<${tag}>`;
    };
  const code: RendererRule = (tokens, index) => {
    const { language, label } = describe(tokens[index]!.info);
    const caption = `<figcaption><span>${escapeHtml(label)}</span></figcaption>`;
    const kind = language ? ` class="language-${escapeHtml(language)}"` : '';
    return `<figure class="code">${caption}<pre><code${kind}>${escapeHtml(tokens[index]!.content)}</code></pre></figure>`;
  };
  return {
    table_open: () => '<div class="tbl"><table>',
    table_close: () => '</table></div>',
    th_open: cell('th'),
    td_open: cell('td'),
    fence: code,
    code_block: code,
    image: (tokens, index) => imagePlace(tokens[index]!, escapeHtml),
  };
}

/** An image is a link to where it lies, named by its host; inside a link it is words. */
function imagePlace(token: Token, escapeHtml: (text: string) => string): string {
  const url = destination(String(token.attrGet('src') ?? ''));
  const words = token.content ? `: ${token.content}` : '';
  if (url === null || url.protocol === 'mailto:')
    return `<span class="image">${escapeHtml(`Image${words}`)}</span>`;
  const shown = escapeHtml(`Image from ${url.host}${words}`);
  if (token.meta?.isLinked) return `<span class="image">${shown}</span>`;
  const address = escapeHtml(url.href);
  return `<a class="image" href="${address}" title="${address}" target="_blank" rel="noopener noreferrer">${shown}</a>`;
}

/** Every link opens apart, tells its whole address, and its true host where its words name another. */
function showHosts(children: Token[]): void {
  for (let at = children.length - 1; at >= 0; at--) {
    const open = children[at]!;
    if (open.type !== 'link_open') continue;
    const url = destination(String(open.attrGet('href') ?? ''));
    if (url === null) continue;
    open.attrSet('target', '_blank');
    open.attrSet('rel', 'noopener noreferrer');
    open.attrSet('title', url.href);
    const end = children.findIndex((token, index) => index > at && token.type === 'link_close');
    const inside = children.slice(at, end);
    for (const token of inside) token.meta = { isLinked: true };
    const host = hostToShow(url, inside.map((token) => token.content).join(''));
    if (host !== null) children.splice(end + 1, 0, ...hostNote(children[end]!, host));
  }
}

function hostNote(like: Token, host: string): Token[] {
  const make = (type: string, tag: string, nesting: -1 | 0 | 1) =>
    Object.assign(new (like.constructor as new (...parts: unknown[]) => Token)(type, tag, nesting), {
      level: like.level,
    });
  const open = make('host_open', 'span', 1);
  open.attrSet('class', 'host');
  return [open, Object.assign(make('text', '', 0), { content: host }), make('host_close', 'span', -1)];
}

function markTasks(tokens: Token[]): void {
  tokens.forEach((token, index) => {
    const isFirstInItem =
      tokens[index - 1]?.type === 'paragraph_open' && tokens[index - 2]?.type === 'list_item_open';
    const first = token.children?.[0];
    if (token.type !== 'inline' || !isFirstInItem || first?.type !== 'text') return;
    const found = /^\[([ xX])\]\s/.exec(first.content);
    if (!found) return;
    first.content = (found[1] === ' ' ? '☐ ' : '☑ ') + first.content.slice(found[0].length);
    tokens[index - 2]!.attrSet('class', 'task');
  });
}

/** A reply's name is a third-level heading, so the headings inside it begin at the fourth. */
function lowerHeading(token: Token): void {
  const level = /^h([1-6])$/.exec(token.tag)?.[1];
  if (level) token.tag = `h${Math.min(6, Number(level) + 3)}`;
}
