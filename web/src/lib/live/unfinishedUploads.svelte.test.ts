import { expect, it } from 'vitest';
import { ApiError } from '$lib/api/client';
import type { ProjectFile } from '$lib/api/types';
import { Unsettled } from './unfinishedUploads.svelte';

const KEY = 'upload-1';
const broughtBy = (upload_key: string | null, version = 1) => ({ upload_key, version }) as ProjectFile;

it('hides what an upload brought until the server has answered', () => {
  const unsettled = new Unsettled();
  unsettled.begin(KEY);
  expect(unsettled.hides(broughtBy(KEY))).toBe(true);
  expect(unsettled.hides(broughtBy(null))).toBe(false);
  expect(unsettled.hides(broughtBy('an upload of another tab'))).toBe(false);
  expect(unsettled.hides(broughtBy(KEY, 2))).toBe(false);
  unsettled.settle(KEY);
  expect(unsettled.hides(broughtBy(KEY))).toBe(false);
});

it('tells the server of a cancelled upload, and never shows what it brought', async () => {
  const told: string[] = [];
  const unsettled = new Unsettled((project, key) => Promise.resolve(void told.push(`${project} ${key}`)));
  unsettled.begin(KEY);
  await unsettled.cancel('p', KEY);
  await unsettled.resume();
  expect(told).toEqual([`p ${KEY}`]);
  expect(unsettled.hides(broughtBy(KEY))).toBe(true);
});

it.each([
  [new ApiError(0, 'offline', 'Gone.'), 2],
  [new ApiError(503, 'busy', 'Busy.'), 2],
  [new ApiError(429, 'too_many', 'Later.'), 2],
  [new ApiError(404, 'not_found', 'No such project.'), 1],
])('tells the server again when it could not hear: %s', async (failure, times) => {
  let told = 0;
  const unsettled = new Unsettled(() => (told++ ? Promise.resolve() : Promise.reject(failure)));
  unsettled.begin(KEY);
  await unsettled.cancel('p', KEY);
  for (let again = 0; again < 3; again++) await unsettled.resume();
  expect(told).toBe(times);
});

it('has nothing to cancel of an upload that was not begun, or was answered', async () => {
  const unsettled = new Unsettled(() => Promise.reject(new Error('nobody is told')));
  await unsettled.cancel('p', KEY);
  unsettled.begin(KEY);
  unsettled.settle(KEY);
  await unsettled.cancel('p', KEY);
  expect(unsettled.hides(broughtBy(KEY))).toBe(false);
});
