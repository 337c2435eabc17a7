import { expect, it } from 'vitest';
import type { ProjectFile } from '$lib/api/types';
import { filesMatching, openFileMentionAt } from './fileMentions';

it.each([
  ['#', { start: 0, typed: '' }],
  ['See #docs/au', { start: 4, typed: 'docs/au' }],
  ['# A heading', null],
  ['C#', null],
  ['It is number #12', null],
])('knows where a file is being named: %s', (text, found) => {
  expect(openFileMentionAt(text, text.length)).toEqual(found);
});

it('offers the files whose path goes on from what was typed, but none too large to carry along', () => {
  const file = (path: string, size_bytes = 9) => ({ path, size_bytes }) as ProjectFile;
  const files = [file('src/oauth.ts'), file('docs/auth-flow.md'), file('auth.zip', 1e9), file('plan.md')];
  expect(filesMatching('auth', files).map(({ path }) => path)).toEqual(['docs/auth-flow.md', 'src/oauth.ts']);
});
