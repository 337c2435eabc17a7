import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const SOURCE = readFileSync(new URL('./types.ts', import.meta.url), 'utf8');
const ALIAS = /^export type (\w+) =[^;]*?Schemas\['(\w+)'\]/gm;

it('every type from the server has the name of its schema', () => {
  const aliases = [...SOURCE.matchAll(ALIAS)].map(([, name, schema]) => ({ name, schema }));
  expect(aliases.length).toBeGreaterThan(50);
  expect(aliases.filter(({ name, schema }) => name !== schema)).toEqual([]);
});
