import { expect, it, vi } from 'vitest';
import type { SearchAnswer } from '$lib/api/types';
import { Lookup } from './searchRequest.svelte';

const PATIENCE = { timeout: 60_000 };

const found = (took_ms: number): SearchAnswer => ({ hits: [], took_ms, without_meaning: null, next: null });

it('calls off the search before, and its late answer changes nothing', async () => {
  const lookup = new Lookup();
  let answerLate = (_: SearchAnswer): void => undefined;
  let wasCalledOff = false;
  lookup.ask((signal) => {
    signal.addEventListener('abort', () => (wasCalledOff = true));
    return new Promise((resolve) => (answerLate = resolve));
  });
  lookup.ask(() => Promise.resolve(found(2)));
  expect(wasCalledOff).toBe(true);
  answerLate(found(1));
  await vi.waitFor(() => expect(lookup.answer?.took_ms).toBe(2), PATIENCE);
  expect(lookup.isLooking).toBe(false);
});

it('waits for the typing to rest', async () => {
  vi.useFakeTimers();
  const lookup = new Lookup();
  const find = vi.fn(() => Promise.resolve(found(1)));
  lookup.ask(find, 200);
  vi.advanceTimersByTime(150);
  lookup.ask(find, 200);
  vi.advanceTimersByTime(150);
  expect(find).not.toHaveBeenCalled();
  expect(lookup.isLooking).toBe(true);
  vi.advanceTimersByTime(50);
  expect(find).toHaveBeenCalledOnce();
  vi.useRealTimers();
});

it('says what went wrong, and keeps nothing of an older answer', async () => {
  const lookup = new Lookup();
  lookup.ask(() => Promise.resolve(found(1)));
  await vi.waitFor(() => expect(lookup.answer).not.toBeNull(), PATIENCE);
  lookup.ask(() => Promise.reject(new Error('The server cannot be reached.')));
  await vi.waitFor(() => expect(lookup.problem).toBe('The server cannot be reached.'), PATIENCE);
  expect(lookup.answer).toBeNull();
  lookup.ask(null);
  expect(lookup.problem).toBe('');
});
