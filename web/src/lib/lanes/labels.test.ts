import { describe, expect, it } from 'vitest';
import vector from '../../../../tests/vectors/labels/reviews.json';
import { withNames } from './labels';

const read = Object.entries(vector.names).map(([letter, name], n) => ({
  message_id: `m${letter}`,
  seat: n + 1,
  name,
  label: `Answer ${letter}`,
}));

describe('a review reads with names', () => {
  for (const [written, named] of vector.texts as [string, string][])
    it(JSON.stringify(written), () => expect(withNames(written, read)).toBe(named));

  it('where there are labels; without them it stays as it is', () => {
    expect(withNames('Answer B > A', [{ message_id: 'm', seat: 1, name: 'Ada', label: '' }])).toBe(
      'Answer B > A',
    );
  });

  it('while it is being written, too', () => {
    const whole = 'Answer B is right.\n\nRanking: B > A > C';
    for (let end = 0; end <= whole.length; end++)
      expect(withNames(whole.slice(0, end), read)).not.toMatch(/Answer [ABC]/);
  });
});
