import { expect, it } from 'vitest';
import type { Receipt, Segment } from '$lib/api/types';
import { filesUsedBy } from './filesUsed';

const file = (layer: Segment['layer'], path: string, start_line: number | null, end_line: number | null) =>
  ({ layer, reason: 'retrieved', source_id: 'x', location: { path, start_line, end_line } }) as Segment;
const receipt = {
  segments: [
    file('always', 'docs/all.md', null, null),
    file('retrieved', 'docs/plan.md', 10, 40),
    file('retrieved', 'src/a.ts', 1, 9),
  ],
} as unknown as Receipt;

it('lists what a reply names first, also when it was not shown to it', () => {
  const said = 'So it is [src/a.ts:3], [src/a.ts:3] and [docs/else.md:1-2], see [round 2].';
  expect(filesUsedBy(receipt, said).map(({ name, how, isCited }) => [name, how, isCited])).toEqual([
    ['src/a.ts:1-9', 'found by search', true],
    ['docs/else.md:1-2', 'not sent', true],
    ['docs/all.md', 'always sent', false],
    ['docs/plan.md:10-40', 'found by search', false],
  ]);
});

it('does not take a citation of other lines for the ones it was shown', () => {
  const [first] = filesUsedBy(receipt, 'See [docs/plan.md:90-95].');
  expect(first).toMatchObject({ name: 'docs/plan.md:90-95', how: 'not sent' });
});
