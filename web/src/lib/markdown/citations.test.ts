import { expect, it } from 'vitest';
import { markIn, shortened } from './citations';
import { NOTHING, parse } from './parse';

const html = (text: string) =>
  parse(text)
    .blocks.map((block) => (block.kind === 'html' ? block.html : block.source))
    .join('');
const marks = (text: string) =>
  [...html(text).matchAll(/<span class="cite">(.*?)<\/span>/g)].map(([, mark]) => mark);

it('are found in paragraphs, lists, tables and headings', () => {
  expect(marks('As [docs/plan.md:12-40] says, and [round 7].')).toEqual([
    '[docs/plan.md:12-40]',
    '[round 7]',
  ]);
  expect(marks('# On [a.md:1]\n\n- one [b c.md:2-3]: yes\n\n| x |\n|---|\n| [d.md:4–5] |')).toEqual([
    '[a.md:1]',
    '[b c.md:2-3]',
    '[d.md:4–5]',
  ]);
});

it('keep a path whole whatever its letters mean elsewhere', () => {
  expect(marks('see [src/__init__.py:1-3] and **[*odd*.md:2]**')).toEqual([
    '[src/__init__.py:1-3]',
    '[*odd*.md:2]',
  ]);
});

it('are never found in programs, in links, or where a bracket was escaped', () => {
  expect(marks('`[a.md:1]`\n\n```\n[a.md:1]\n```\n\n    [a.md:1]')).toEqual([]);
  expect(marks('[a.md:1](https://example.org) [see [b.md:2] there](https://example.org) \\[c.md:3]')).toEqual(
    [],
  );
});

it('come as soon as they are whole, and touch no block before them', () => {
  const half = parse('First.\n\nAs [docs/plan.md:12-4');
  expect(half.blocks[1]).toMatchObject({ html: '<p>As [docs/plan.md:12-4</p>\n' });
  const whole = parse('First.\n\nAs [docs/plan.md:12-40] says', half);
  expect(whole.blocks[0]).toBe(half.blocks[0]);
  expect(whole.blocks[1]).toMatchObject({ html: expect.stringContaining('<span class="cite">') });
  expect(parse('', NOTHING).blocks).toEqual([]);
});

it('say what they lead to', () => {
  expect(markIn('[./docs/plan.md:12-40]')).toEqual({ kind: 'file', path: 'docs/plan.md', from: 12, to: 40 });
  expect(markIn('[a.md:9-3]')).toMatchObject({ from: 9, to: 9 });
  expect(markIn('[Round 7]')).toEqual({ kind: 'round', number: 7 });
  for (const text of ['[x]', '[see round 7]', '[Note: 12]', 'a.md:1', '[a.md:1] '])
    expect(markIn(text)).toBeNull();
});

it('show a long path by its beginning and its end', () => {
  expect(shortened('docs/plan.md')).toBe('docs/plan.md');
  const short = shortened('packages/server/src/handlers/authentication/refresh.ts');
  expect(short).toHaveLength(34);
  expect(short).toMatch(/^packages.*….*refresh\.ts$/);
});
