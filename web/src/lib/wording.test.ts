/** The interface says plainly what a thing does: words that were given up for plainer ones do not come back. */
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'svelte/compiler';
import ts from 'typescript';
import { expect, it } from 'vitest';

const SOURCE = new URL('..', import.meta.url).pathname;

const RETIRED = [
  /\bminds?\b/i,
  /\bhouse\b/i,
  /\b(the|this|that|another|every|your|no|open|saved|first) tables?\b/i,
  /\bset the first place\b|\briddle\b|\blook again\b|\bslip in it\b/i,
  /\bsits? (down|with|there|at)\b|\bwho sits\b|\bseat (it|them|someone)\b/i,
  /\b(bring|brings|brought) (it|them|back|along|in|round|together)\b|\bbring something\b/i,
  /\bchair\b/i,
  /\bsynthes[ei]s?\b/i,
  /\bcontext receipt\b|\bworking rounds\b|\bhow it talks\b/i,
  /\bin line\b|\bfell silent\b|\bline dropped\b|\bbroken off\b|\bcalled off\b|\bbroke on our side\b/i,
  /\bwill go\b|\bfor good\b|\bstops here\b|\banother road\b|\bwhere it left\b/i,
  /\banew\b|\bat hand\b|\btaken in\b|\blooked up\b|\btry retrieval\b/i,
  /\bwho (sees what|tells it|brings|is addressed)\b|\bsomeone else\b|\bwhose it is\b/i,
  /\bdistantly alike\b|\bwords beside it\b|\b19 times in 20\b/i,
  /\b(can|they|it) rests?\b|\brests? in the archive\b/i,
  /\byou (own it|can write|can read)$/i,
  /\bsilent\b|\b(hear|hears|heard|told)\b|\b(seat|seats|seated|seating)\b/i,
  /\bat the table\b|\bat hand\b|\btaken out of (the|every)\b|\bwho (shares|holds) what\b|\bnobody here\b/i,
  /\bhide the names\b|\bwent wrong here\b|\bany more\b|\bwhat if\b|\blooks? after\b|\bretrieval\b/i,
  /^(Paper|Evening|As the system|Literary|Glyph|Said|Quick|In turn|Each alone|Chosen replies|Find the hole)$/,
];

/** Attributes whose values are names for programs, not texts. */
const NAMES = new Set(['class', 'href', 'id', 'type', 'role', 'name', 'rel', 'viewBox', 'd', 'style']);
const NAMES_BEGIN = /^data-|^aria-(controls|describedby|labelledby|owns)$/;

interface Text {
  where: string;
  words: string;
}

const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter(
  (path) => /\.(svelte|ts)$/.test(path) && !/\.test\.ts$|\.d\.ts$|samples\.ts$/.test(path),
);

/** Read before the tests begin: reading takes as long as the machine needs. */
const texts = files.flatMap(textsOf);

it('is looked for in all there is to read', () => {
  const found = texts.map(({ words }) => words);
  expect(found).toContain('What would you like to ask?'); // the text of an element
  expect(found).toContain('Write a message'); // an attribute
  expect(found).toContain('Side panel'); // a string of a program
  expect(found.length).toBeGreaterThan(1000);
});

it('has no word that was retired', () => {
  const found = texts
    .filter(({ words }) => RETIRED.some((word) => word.test(words)))
    .map(({ where, words }) => `${where}: ${words}`);
  expect(found).toEqual([]);
});

function textsOf(path: string): Text[] {
  const source = readFileSync(`${SOURCE}/${path}`, 'utf8');
  return path.endsWith('.svelte') ? inMarkup(path, source) : inProgram(path, source);
}

interface Piece {
  type?: string;
  name?: string;
  data?: string;
  start?: number;
  end?: number;
}

function inMarkup(path: string, source: string): Text[] {
  const tree = parse(source, { modern: true });
  const texts: Text[] = [];
  const walk = (piece: unknown): void => {
    if (Array.isArray(piece)) return piece.forEach(walk);
    if (!piece || typeof piece !== 'object') return;
    const { type, name, data, start = 0, end = 0 } = piece as Piece;
    if (type === 'Attribute' && (NAMES.has(name ?? '') || NAMES_BEGIN.test(name ?? ''))) return;
    if (type === 'Text') texts.push({ where: path, words: plain(data ?? '') });
    if (type === 'ExpressionTag' || type === 'AttachTag' || type === 'SpreadAttribute')
      texts.push(...inProgram(path, source.slice(start + 1, end - 1)));
    else Object.values(piece).forEach(walk);
  };
  walk(tree.fragment);
  for (const script of [tree.instance, tree.module]) {
    if (!script) continue;
    const { start, end } = script.content as unknown as { start: number; end: number };
    texts.push(...inProgram(path, source.slice(start, end)));
  }
  return texts.filter(({ words }) => words);
}

function inProgram(path: string, source: string): Text[] {
  const texts: Text[] = [];
  const walk = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return;
    if (ts.isStringLiteralLike(node) && isText(node.text))
      texts.push({ where: path, words: plain(node.text) });
    if (ts.isTemplateExpression(node)) {
      const parts = [node.head.text, ...node.templateSpans.map((span) => span.literal.text)];
      if (isText(parts.join(' '))) texts.push({ where: path, words: plain(parts.join('…')) });
    }
    ts.forEachChild(node, walk);
  };
  walk(ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true));
  return texts;
}

/** A word alone, in small letters, is a name for programs: "synthesis", "persona:". */
function isText(words: string): boolean {
  if (words.startsWith('/api/')) return false;
  return /^[A-Z]/.test(words.trim()) || /\S\s+\S/.test(words);
}

function plain(words: string): string {
  return words.replace(/\s+/g, ' ').trim();
}
