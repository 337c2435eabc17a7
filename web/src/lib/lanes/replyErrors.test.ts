import { expect, it } from 'vitest';
import { failureText, isUncharged } from './replyErrors';

it('a fault names who it was, and its sentence goes on from there', () => {
  const failure = {
    code: 'rate_limited',
    message: 'OpenAI asked us to slow down. Too many requests this minute.',
    detail: '429',
    retry_at: null,
  };
  expect(failureText(failure, 'OpenAI')).toMatchObject({
    title: 'OpenAI asked us to slow down',
    sentence: 'Too many requests this minute.',
    detail: '429',
    isCalm: false,
    isFinal: false,
  });
});

it('a model that declines is no breakdown, and asking it again would not help', () => {
  const failure = {
    code: 'filtered',
    message: 'Its safety filter stopped the reply.',
    detail: null,
    retry_at: null,
  };
  expect(failureText(failure, 'OpenAI')).toMatchObject({
    title: 'This model declined',
    isCalm: true,
    isFinal: true,
  });
});

it('trouble at the provider is told as its trouble, and not as a lost connection', () => {
  const failure = {
    code: 'unavailable',
    message: 'OpenAI is having trouble and did not answer.',
    detail: 'HTTP 500',
    retry_at: null,
  };
  expect(failureText(failure, 'OpenAI')).toMatchObject({
    title: 'OpenAI is having trouble and did not answer',
    sentence: '',
    short: 'no answer',
  });
});

it('a kind with many reasons is called by its own', () => {
  const titles = [
    ['unavailable', 'OpenAI could not be reached.'],
    ['unavailable', 'OpenAI does not offer gpt-4.1 to this key. Use another model.'],
    [
      'rate_limited',
      'OpenAI says the credit of this key is used up. Add credit there, or use another model.',
    ],
    ['auth', 'OpenAI does not allow this request with this key.'],
  ].map(([code, message]) => {
    const { title, sentence } = failureText(
      { code: code!, message: message!, detail: null, retry_at: null },
      'OpenAI',
    );
    return [title, sentence];
  });
  expect(titles).toEqual([
    ['OpenAI could not be reached', ''],
    ['OpenAI does not offer gpt-4.1 to this key', 'Use another model.'],
    ['OpenAI says the credit of this key is used up', 'Add credit there, or use another model.'],
    ['OpenAI does not allow this request with this key', ''],
  ]);
});

it('the moment of another try is told once, by the clock at hand', () => {
  const at = new Date(2096, 9, 2, 7, 6).getTime();
  const message = 'Groq asked us to slow down. It can be asked again at 05:06 UTC on 2 October.';
  expect(failureText({ code: 'rate_limited', message, detail: null, retry_at: at }, 'Groq')).toMatchObject({
    title: 'Groq asked us to slow down',
    sentence: '',
    retryAt: at,
  });
});

it('nothing was charged is said only where a request was turned away', () => {
  const of = (code: string, message = '') => isUncharged({ code, message, detail: null, retry_at: null });
  expect(['rate_limited', 'auth', 'unknown_model'].map((code) => of(code))).toEqual([true, true, true]);
  expect(of('unavailable', 'OpenAI is having trouble and did not answer. Nothing was charged.')).toBe(true);
  expect(of('unavailable', 'OpenAI is having trouble and did not answer.')).toBe(false);
  expect(['timeout_first_byte', 'cut', 'filtered', 'internal'].map((code) => of(code))).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect(isUncharged(null)).toBe(false);
});

it('a code nobody has heard of still becomes a sentence', () => {
  for (const code of ['brand_new', 'constructor', '__proto__']) {
    expect(failureText({ code, message: 'It broke.', detail: null, retry_at: null }, '')).toMatchObject({
      title: 'No reply',
      sentence: 'It broke.',
    });
  }
  expect(failureText(null, '').sentence).not.toBe('');
});
