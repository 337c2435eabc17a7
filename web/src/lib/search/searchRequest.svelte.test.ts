import { expect, it, vi } from 'vitest';
import type { SearchAnswer } from '$lib/api/types';
import { SearchRequest } from './searchRequest.svelte';

const PATIENCE = { timeout: 60_000 };

const found = (took_ms: number): SearchAnswer => ({ hits: [], took_ms, without_meaning: null, next: null });

it('calls off the search before, and its late answer changes nothing', async () => {
  const searchRequest = new SearchRequest();
  let answerLate = (_: SearchAnswer): void => undefined;
  let wasCalledOff = false;
  searchRequest.ask((signal) => {
    signal.addEventListener('abort', () => (wasCalledOff = true));
    return new Promise((resolve) => (answerLate = resolve));
  });
  searchRequest.ask(() => Promise.resolve(found(2)));
  expect(wasCalledOff).toBe(true);
  answerLate(found(1));
  await vi.waitFor(() => expect(searchRequest.answer?.took_ms).toBe(2), PATIENCE);
  expect(searchRequest.isLooking).toBe(false);
});

it('waits for the typing to rest', async () => {
  vi.useFakeTimers();
  const searchRequest = new SearchRequest();
  const find = vi.fn(() => Promise.resolve(found(1)));
  searchRequest.ask(find, 200);
  vi.advanceTimersByTime(150);
  searchRequest.ask(find, 200);
  vi.advanceTimersByTime(150);
  expect(find).not.toHaveBeenCalled();
  expect(searchRequest.isLooking).toBe(true);
  vi.advanceTimersByTime(50);
  expect(find).toHaveBeenCalledOnce();
  vi.useRealTimers();
});

it('says what went wrong, and keeps nothing of an older answer', async () => {
  const searchRequest = new SearchRequest();
  searchRequest.ask(() => Promise.resolve(found(1)));
  await vi.waitFor(() => expect(searchRequest.answer).not.toBeNull(), PATIENCE);
  searchRequest.ask(() => Promise.reject(new Error('The server cannot be reached.')));
  await vi.waitFor(() => expect(searchRequest.problem).toBe('The server cannot be reached.'), PATIENCE);
  expect(searchRequest.answer).toBeNull();
  searchRequest.ask(null);
  expect(searchRequest.problem).toBe('');
});
