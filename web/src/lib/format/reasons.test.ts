import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { LeftOut, Segment } from '$lib/api/types';
import { LEFT_OUT_BECAUSE, SENT_BECAUSE, fileName, whyLeftOut, whySent } from './reasons';

const schema = readFileSync(new URL('../api/schema.d.ts', import.meta.url), 'utf8');

/** The values of an enum in the server's API. */
function valuesOf(name: string): string[] {
  const line = new RegExp(`^ +${name}: ((?:"\\w+"(?: \\| )?)+);$`, 'm').exec(schema);
  return [...(line?.[1] ?? '').matchAll(/"(\w+)"/g)].map(([, value = '']) => value);
}

describe('the reasons of a receipt', () => {
  it('have words for every reason of the server', () => {
    for (const [name, words] of [
      ['SegmentReason', SENT_BECAUSE],
      ['LeftOutReason', LEFT_OUT_BECAUSE],
    ] as const) {
      expect(valuesOf(name).length).toBeGreaterThan(10);
      expect(Object.keys(words).toSorted()).toEqual(valuesOf(name).toSorted());
      expect(Object.values(words).filter((text) => !text.trim())).toEqual([]);
    }
  });

  it('say how well a search result matched', () => {
    const match = { strength: 'strong', score: 0.8, why: '3 of 4 words' };
    const segment = { reason: 'retrieved', match } as Segment;
    expect(whySent(segment)).toBe('strong match · 3 of 4 words');
    expect(whySent({ ...segment, match: { strength: null, score: 0.8, why: '' } })).toBe('');
  });

  it('name the limit that something is over', () => {
    const why = (reason: LeftOut['reason'], limit: number | null, round_number: number | null = null) =>
      whyLeftOut({ reason, limit, round_number, note: '' } as LeftOut);
    expect(why('not_among_best', 3)).toBe('not among the 3 best');
    expect(why('image_bytes', 5_000_000)).toBe('models take images of up to 5 MB');
    expect(why('image_side', 8_000)).toBe('models take images of up to 8,000 pixels a side');
    expect(why('outside_window', null, 20)).toBe('the first 20 rounds are outside the window');
    expect(why('over_budget', null)).toBe('over the budget');
  });

  it('give way to a note', () => {
    expect(whyLeftOut({ reason: 'unreadable', note: 'It is locked.' } as LeftOut)).toBe('It is locked.');
    expect(whySent({ reason: 'other', note: 'as it was called once' } as Segment)).toBe(
      'as it was called once',
    );
  });
});

it('a file is named by its path and its lines, or by its own name', () => {
  const nowhere = { path: null, start_line: null, end_line: null, file_name: null };
  const at = (change: object) =>
    fileName({ ...nowhere, conversation_title: null, round_number: null, speaker: null, ...change });
  expect(at({ path: 'docs/plan.md' })).toBe('docs/plan.md');
  expect(at({ path: 'docs/plan.md', start_line: 3, end_line: 9 })).toBe('docs/plan.md:3-9');
  expect(at({ path: 'docs/plan.md', start_line: 3, end_line: 3 })).toBe('docs/plan.md:3');
  expect(at({ file_name: 'photo.png' })).toBe('photo.png');
  expect(at({})).toBe('');
  expect(fileName(null)).toBe('');
});
