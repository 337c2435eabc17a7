import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Estimate, NewEstimate } from '$lib/api/types';
import { EstimateRequest } from './estimateRequest.svelte';

const wish = (text: string): NewEstimate => ({ text, voices: [] });
const found: Estimate = { items: [], cost_micros: 7, chair: null };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('asks once, when the writer pauses', async () => {
  const asked: string[] = [];
  const estimateRequest = new EstimateRequest((each) => {
    asked.push(each.text);
    return Promise.resolve(found);
  }, 400);
  estimateRequest.soon(wish('h'))();
  estimateRequest.soon(wish('hello'));
  await vi.advanceTimersByTimeAsync(399);
  expect(asked).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(asked).toEqual(['hello']);
  expect(estimateRequest.found).toEqual(found);
});

it('shows nothing when it could not be reckoned', async () => {
  const estimateRequest = new EstimateRequest(() => Promise.reject(new Error('offline')), 0);
  estimateRequest.found = found;
  estimateRequest.soon(wish('hello'));
  await vi.advanceTimersByTimeAsync(1);
  expect(estimateRequest.found).toBeNull();
});

it('leaves an answer aside that comes after it was called off', async () => {
  let answer: (estimate: Estimate) => void = () => undefined;
  const estimateRequest = new EstimateRequest(() => new Promise((resolve) => (answer = resolve)), 0);
  const off = estimateRequest.soon(wish('hello'));
  await vi.advanceTimersByTimeAsync(1);
  off();
  answer(found);
  await vi.advanceTimersByTimeAsync(1);
  expect(estimateRequest.found).toBeNull();
});
