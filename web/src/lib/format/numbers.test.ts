import { expect, it } from 'vitest';
import {
  clock,
  counted,
  duration,
  inWords,
  meter,
  money,
  ordinal,
  roughMoney,
  tokens,
  totalMoney,
  totalOf,
  wordCount,
} from './numbers';

it.each([
  [0, '0'],
  [912, '912'],
  [1_465, '1,465'],
  [8_100, '8.1k'],
  [21_846, '21.8k'],
  [99_949, '99.9k'],
  [99_951, '100k'],
  [128_000, '128k'],
  [1_234_567, '1.2M'],
])('%i tokens read %s', (count, shown) => expect(tokens(count)).toBe(shown));

it.each([
  [null, 'price unknown'],
  [0, 'free'],
  [4, 'under $0.0001'],
  [4_200, '$0.0042'],
  [34_800, '$0.0348'],
  [1_000_000, '$1.00'],
  [48_204_999, '$48.20'],
  [1_234_500_000, '$1,234.50'],
])('%s micro-dollars paid read %s', (micros, shown) => expect(money(micros)).toBe(shown));

it.each([
  [0, 'free'],
  [400, 'under $0.001'],
  [4_000, '$0.004'],
  [80_400, '$0.08'],
  [1_250_000, '$1.25'],
])('%i micro-dollars expected read %s', (micros, shown) => expect(roughMoney(micros)).toBe(shown));

it.each([
  [300, '0.3 s'],
  [11_420, '11.4 s'],
  [99_960, '1 min 40 s'],
  [125_000, '2 min 5 s'],
  [120_000, '2 min'],
])('%i ms read %s', (ms, shown) => expect(duration(ms)).toBe(shown));

it('a footer says what went in, came out, was paid and how long it took', () => {
  const usage = {
    input_tokens: 21_846,
    cached_tokens: 0,
    output_tokens: 912,
    reasoning_tokens: 0,
    cost_micros: 34_800,
    latency_ms: 11_400,
    first_token_ms: 800,
  };
  expect(meter(usage)).toEqual(['21.8k tokens in', '912 out', '$0.0348', '11.4 s']);
  expect(meter({ ...usage, cost_micros: 0 })[2]).toBe('free');
  expect(meter({ ...usage, cost_micros: null })[2]).toBe('price unknown');
  expect(meter({ ...usage, input_tokens: 0, output_tokens: 0, cost_micros: 0 })).toEqual([]);
  expect(meter(null)).toEqual([]);
});

it('small counts are words', () => {
  expect([inWords(2), inWords(8), inWords(9)]).toEqual(['Two', 'Eight', '9']);
  expect([ordinal(1), ordinal(2), ordinal(9)]).toEqual(['first', 'second', '9th']);
  expect([counted(1, 'word'), counted(1_240, 'word')]).toEqual(['1 word', '1,240 words']);
  expect([wordCount(''), wordCount('  one\n two ')]).toEqual([0, 2]);
});

it('a time says its day only when it is another one', () => {
  const now = new Date(2026, 6, 2, 12).getTime();
  expect(clock(new Date(2026, 6, 2, 10, 42).getTime(), now, 'en-GB')).toBe('10:42');
  expect(clock(new Date(2026, 5, 3, 9, 5).getTime(), now, 'en-GB')).toBe('3 June, 9:05');
  expect(clock(new Date(2024, 5, 3, 9, 5).getTime(), now, 'en-GB')).toBe('3 June 2024');
});

it.each([
  [[1_000, 2_000], '$0.0030'],
  [[1_000, null], 'at least $0.0010'],
  [[0, null], 'price unknown'],
  [[0, 0], 'free'],
])('the prices %j add up to %j', (prices, words) => {
  expect(totalMoney(totalOf(prices))).toBe(words);
});

it('an hour has a leading zero only where the language writes one', () => {
  const at = new Date(2026, 6, 2, 9, 5).getTime();
  expect(clock(at, at, 'en-US')).toMatch(/^9:05\sAM$/);
  expect(clock(at, at, 'en-GB')).toBe('9:05');
});
