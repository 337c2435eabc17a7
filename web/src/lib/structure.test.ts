/** The folders of src/lib stand in a line (folders.js), and files are called by what they hold. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { above, FOLDERS } from '../../folders.js';

const LIB = new URL('.', import.meta.url).pathname;
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*['"]([^'"\n]+)['"]/g;
const ENDINGS = ['', '.ts', '.svelte.ts', '.svelte'];

/** File names that were given up, because nobody could tell from them what the file held. */
const RETIRED = new Set(
  `acts ago allowance Alone Always AsItWas Ask asked AskSynthesis Attached attaching best Brought Check Chip Chips
  Choices cited Clip Compared composing Cut deeds Describe door Door dropped Dropping entries estimating family Fault
  faults fit Found FoundChips frames Fresh Gather grove growing guests house House HouseCommands invitations kept Kept
  Keys laid latest leave leisure lookup looking Mark milestones mine Minds near Nothing now opened opening outgoing
  Outlined pace Paper pasted PickButton PickMind pictures Pill Places places ProjectRoom quoted Quoted Quoting reading
  reads remember roles Room RoundTable Said SaidHit selected sending Shared Spine standing Standings stepping stretch
  synthesising tip Tips Touched touched Trace UnderWay unsent unsettled visible voting walk walking ways Ways WhenBack
  WhenFilter Who WhoSpoke Writing util utils helper helpers common misc manager service`.split(/\s+/),
);

const files = readdirSync(LIB, { recursive: true, encoding: 'utf8' }).filter((path) =>
  /\.(svelte|ts)$/.test(path),
);

it('lists every folder of src/lib in folders.js, and no other', () => {
  const folders = readdirSync(LIB).filter((name) => statSync(join(LIB, name)).isDirectory());
  expect(folders.sort()).toEqual(Object.keys(FOLDERS).sort());
});

it('lets a folder import only the folders below it', () => {
  const imports = files.flatMap(importsOf);
  expect(imports.length).toBeGreaterThan(1000);
  const upward = imports.filter(({ from, to }) => above(from).includes(to));
  expect(upward.map(({ path, target }) => `${path} imports ${target}`)).toEqual([]);
});

it('has no folder that imports itself through others', () => {
  expect(cycles(files.flatMap(importsOf))).toEqual([]);
});

it('has no file with a retired name', () => {
  expect(files.filter((path) => RETIRED.has(basename(path).split('.')[0]!))).toEqual([]);
});

interface Import {
  path: string;
  target: string;
  from: string;
  to: string;
}

/** Lists a file's imports from other folders, dynamic imports and types included. */
function importsOf(path: string): Import[] {
  const specifiers = [...readFileSync(join(LIB, path), 'utf8').matchAll(IMPORT)].map((found) => found[1]!);
  return specifiers.flatMap((specifier) => {
    const target = resolved(path, specifier);
    const [from, to] = [folderOf(path), target && folderOf(target)];
    return target && from && to && from !== to ? [{ path, target, from, to }] : [];
  });
}

/** The imported file, relative to src/lib; null for packages and for files outside. */
function resolved(path: string, specifier: string): string | null {
  const base = specifier.startsWith('$lib/')
    ? join(LIB, specifier.slice('$lib/'.length))
    : specifier.startsWith('.') && join(LIB, dirname(path), specifier);
  if (!base) return null;
  const found = ENDINGS.map((ending) => base + ending).find(
    (file) => existsSync(file) && statSync(file).isFile(),
  );
  const inside = found && relative(LIB, found);
  return inside && !inside.startsWith('..') ? inside : null;
}

/** Null for a file that lies in src/lib itself. */
function folderOf(path: string): string | null {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : null;
}

/** Folders from which a way of imports leads back to themselves. */
function cycles(imports: Import[]): string[] {
  const next = new Map<string, Set<string>>();
  for (const { from, to } of imports) next.set(from, (next.get(from) ?? new Set()).add(to));
  return [...next.keys()].filter((start) => {
    const reached = new Set<string>();
    const waiting = [...next.get(start)!];
    for (let folder = waiting.pop(); folder; folder = waiting.pop()) {
      if (reached.has(folder)) continue;
      reached.add(folder);
      waiting.push(...(next.get(folder) ?? []));
    }
    return reached.has(start);
  });
}
