import { expect, it } from 'vitest';
import { faultOf } from './faults';

it('a fault names who it was, and its sentence goes on from there', () => {
  const failure = {
    code: 'rate_limited',
    message: 'OpenAI asked us to slow down. Too many requests this minute.',
    detail: '429',
  };
  expect(faultOf(failure, 'OpenAI')).toMatchObject({
    title: 'OpenAI asked us to slow down',
    sentence: 'Too many requests this minute.',
    detail: '429',
    isCalm: false,
    isFinal: false,
  });
});

it('a model that declines is no breakdown, and asking it again would not help', () => {
  const failure = { code: 'filtered', message: 'Its safety filter stopped the reply.', detail: null };
  expect(faultOf(failure, 'OpenAI')).toMatchObject({
    title: 'This model declined',
    isCalm: true,
    isFinal: true,
  });
});

it('a code nobody has heard of still becomes a sentence', () => {
  for (const code of ['brand_new', 'constructor', '__proto__']) {
    expect(faultOf({ code, message: 'It broke.', detail: null }, '')).toMatchObject({
      title: 'No reply',
      sentence: 'It broke.',
    });
  }
  expect(faultOf(null, '').sentence).not.toBe('');
});
