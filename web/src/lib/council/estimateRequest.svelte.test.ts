import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Estimate, NewEstimate } from '$lib/api/types';
import { Estimating } from './estimateRequest.svelte';

const wish = (text: string): NewEstimate => ({ text, voices: [] });
const found: Estimate = { items: [], cost_micros: 7, chair: null };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('asks once, when the writer pauses', async () => {
  const asked: string[] = [];
  const estimating = new Estimating((each) => {
    asked.push(each.text);
    return Promise.resolve(found);
  }, 400);
  estimating.soon(wish('h'))();
  estimating.soon(wish('hello'));
  await vi.advanceTimersByTimeAsync(399);
  expect(asked).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(asked).toEqual(['hello']);
  expect(estimating.found).toEqual(found);
});

it('shows nothing when it could not be reckoned', async () => {
  const estimating = new Estimating(() => Promise.reject(new Error('offline')), 0);
  estimating.found = found;
  estimating.soon(wish('hello'));
  await vi.advanceTimersByTimeAsync(1);
  expect(estimating.found).toBeNull();
});

it('leaves an answer aside that comes after it was called off', async () => {
  let answer: (estimate: Estimate) => void = () => undefined;
  const estimating = new Estimating(() => new Promise((resolve) => (answer = resolve)), 0);
  const off = estimating.soon(wish('hello'));
  await vi.advanceTimersByTimeAsync(1);
  off();
  answer(found);
  await vi.advanceTimersByTimeAsync(1);
  expect(estimating.found).toBeNull();
});
