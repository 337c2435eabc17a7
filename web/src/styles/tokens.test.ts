/** Spacing and fonts come from tokens.css, and every token of these kinds is used. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const SOURCE = new URL('..', import.meta.url).pathname;
const sheets = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.(svelte|css)$/.test(path))
  .map((path) => ({ path, text: readFileSync(`${SOURCE}/${path}`, 'utf8') }));
const tokens = sheets.find(({ path }) => path === 'styles/tokens.css')!.text;

it('gives every gap up to 16 pixels a step of the scale', () => {
  const loose = sheets.flatMap(({ path, text }) =>
    [...text.matchAll(/(?<!\w-)(?:(?:row|column)-)?gap: ([^;]+);/g)]
      .filter(([, value]) => /(?<![\d.])([2-9]|1[0-6])px/.test(value!))
      .map(([declaration]) => `${path}: ${declaration}`),
  );
  expect(loose).toEqual([]);
});

it('has no step of the scale and no font that nothing uses', () => {
  const named = [...tokens.matchAll(/(--(?:sp|ui|read|ask|title|display|code|font)[a-z0-9-]*):/g)];
  const names = [...new Set(named.map(([, name]) => name!))];
  expect(names.length).toBeGreaterThan(20);
  const all = sheets.map(({ text }) => text).join('\n');
  expect(names.filter((name) => !new RegExp(`var\\(${name}[,)]`).test(all))).toEqual([]);
});
