/**
 * Plain text from Markdown, for previews: the words without the marks they were set by.
 *
 * The reader that sets the text on the page reads it here too. So a mark is dropped where the page shows none, and what
 * only looks like one stays: snake_case, the source of a formula. Blocks that do not end as a sentence are ended, so
 * that a heading or the points of a list do not run into what follows. src/tertulia/core/markdown.py does the same for
 * the server; both keep to tests/core/plain_text.json.
 */
import type { Token } from 'markdown-it';
import { tokensOf } from './parse';

interface Plain {
  text: string;
  kind: 'block' | 'item' | 'cell' | 'code';
  /** Which row of a table a cell stands in. */
  row: number;
}

/** How much Markdown is read for each character that is shown: marks, addresses and programs take room. */
const READ = 8;
const READ_AT_LEAST = 1_000;

/** Returns a line of plain text, cut between words. Programs are left out unless there is nothing else. */
export function plainText(markdown: string, most = Infinity): string {
  const room = Math.max(most * READ, READ_AT_LEAST);
  const isCut = markdown.length > room;
  const blocks = blocksOf(isCut ? markdown.slice(0, room) : markdown, isCut);
  const words = blocks.filter(({ kind }) => kind !== 'code');
  return shortened(inOneLine(words.length ? words : blocks), most);
}

/** All of it, each block and each line in a line of its own; programs too. */
export function plainLines(markdown: string): string {
  return blocksOf(markdown, false)
    .map(({ text }) => text.trim())
    .join('\n');
}

/** Returns a line from the middle of a text: marks may have lost their other half, and programs are part of it. */
export function plainCut(markdown: string): string {
  return inOneLine(blocksOf(markdown, true));
}

function blocksOf(markdown: string, isCut: boolean): Plain[] {
  const blocks: Plain[] = [];
  const place = { lists: 0, cells: 0, row: 0 };
  for (const token of tokensOf(markdown)) {
    if (/^(?:bullet|ordered)_list_/.test(token.type)) place.lists += token.nesting;
    if (/^t[hd]_/.test(token.type)) place.cells += token.nesting;
    if (token.type === 'tr_open') place.row += 1;
    const text = textOf(token, isCut);
    if (text.trim() === '') continue;
    const kind = isProgram(token) ? 'code' : place.cells ? 'cell' : place.lists ? 'item' : 'block';
    blocks.push({ text, kind, row: place.row });
  }
  return blocks;
}

function isProgram({ type }: Token): boolean {
  return type === 'fence' || type === 'code_block';
}

function textOf(token: Token, isCut: boolean): string {
  if (token.type === 'inline') return inlineText(token.children ?? [], isCut);
  return isProgram(token) || token.type === 'formula' ? token.content : '';
}

function inlineText(children: Token[], isCut: boolean): string {
  let text = '';
  let isHost = false;
  for (const token of children) {
    if (token.type === 'host_open' || token.type === 'host_close') isHost = token.nesting > 0;
    else if (!isHost) text += wordsOf(token, isCut);
  }
  return text;
}

function wordsOf({ type, content }: Token, isCut: boolean): string {
  if (type === 'softbreak' || type === 'hardbreak') return '\n';
  if (type === 'image') return content || 'Image';
  return type === 'text' && isCut ? withoutHalves(content) : content;
}

/** Marks whose other half was cut off, and rows of a table whose head was. */
function withoutHalves(text: string): string {
  return text
    .replace(/(^|[\s([{"'“‘])(?:\*{2,3}|~~|`+)(?=\S)/g, '$1')
    .replace(/(\S)(?:\*{2,3}|~~|`+)(?=$|[\s.,;:!?)\]}"'”’])/g, '$1')
    .replace(/^\s*\|?[\s:|-]*-{3}[\s:|-]*$/, '')
    .replace(/^\s*\|(.*)\|\s*$/, (_, cells: string) => cells.trim().replace(/\s*\|\s*/g, ', '));
}

function inOneLine(blocks: Plain[]): string {
  return blocks
    .map((block, n) => {
      const text = block.text.replace(/\s+/g, ' ').trim();
      const next = blocks[n + 1];
      return next ? `${text}${isEnded(text) ? '' : endOf(block, next)} ` : text;
    })
    .join('');
}

function isEnded(text: string): boolean {
  return /[.!?…:;,，。！？：；、؟۔।]["'”’»)\]\uE000\uE001]*$/u.test(text);
}

function endOf(block: Plain, next: Plain): string {
  if (block.kind === 'cell' && next.kind === 'cell') return block.row === next.row ? ',' : ';';
  if (block.kind === 'code') return '';
  return block.kind === 'item' && next.kind === 'item' ? ';' : '.';
}

/** Cut between words where there is a space to cut at, and never within a character. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const cut = text.slice(0, most + 1);
  const space = cut.lastIndexOf(' ');
  const end = space > most / 2 ? space : isHigh(text, most - 1) ? most - 1 : most;
  return `${text.slice(0, end).replace(/[\s,;:.]+$/, '')}…`;
}

function isHigh(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xd800 && unit <= 0xdbff;
}
