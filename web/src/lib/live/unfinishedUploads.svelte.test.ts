import { expect, it } from 'vitest';
import { ApiError } from '$lib/api/client';
import type { ProjectFile } from '$lib/api/types';
import { UnfinishedUploads } from './unfinishedUploads.svelte';

const KEY = 'upload-1';
const broughtBy = (upload_key: string | null, version = 1) => ({ upload_key, version }) as ProjectFile;

it('hides what an upload brought until the server has answered', () => {
  const unfinishedUploads = new UnfinishedUploads();
  unfinishedUploads.begin(KEY);
  expect(unfinishedUploads.hides(broughtBy(KEY))).toBe(true);
  expect(unfinishedUploads.hides(broughtBy(null))).toBe(false);
  expect(unfinishedUploads.hides(broughtBy('an upload of another tab'))).toBe(false);
  expect(unfinishedUploads.hides(broughtBy(KEY, 2))).toBe(false);
  unfinishedUploads.settle(KEY);
  expect(unfinishedUploads.hides(broughtBy(KEY))).toBe(false);
});

it('tells the server of a cancelled upload, and never shows what it brought', async () => {
  const told: string[] = [];
  const unfinishedUploads = new UnfinishedUploads((project, key) =>
    Promise.resolve(void told.push(`${project} ${key}`)),
  );
  unfinishedUploads.begin(KEY);
  await unfinishedUploads.cancel('p', KEY);
  await unfinishedUploads.resume();
  expect(told).toEqual([`p ${KEY}`]);
  expect(unfinishedUploads.hides(broughtBy(KEY))).toBe(true);
});

it.each([
  [new ApiError(0, 'offline', 'Gone.'), 2],
  [new ApiError(503, 'busy', 'Busy.'), 2],
  [new ApiError(429, 'too_many', 'Later.'), 2],
  [new ApiError(404, 'not_found', 'No such project.'), 1],
])('tells the server again when it could not hear: %s', async (failure, times) => {
  let told = 0;
  const unfinishedUploads = new UnfinishedUploads(() =>
    told++ ? Promise.resolve() : Promise.reject(failure),
  );
  unfinishedUploads.begin(KEY);
  await unfinishedUploads.cancel('p', KEY);
  for (let again = 0; again < 3; again++) await unfinishedUploads.resume();
  expect(told).toBe(times);
});

it('has nothing to cancel of an upload that was not begun, or was answered', async () => {
  const unfinishedUploads = new UnfinishedUploads(() => Promise.reject(new Error('nobody is told')));
  await unfinishedUploads.cancel('p', KEY);
  unfinishedUploads.begin(KEY);
  unfinishedUploads.settle(KEY);
  await unfinishedUploads.cancel('p', KEY);
  expect(unfinishedUploads.hides(broughtBy(KEY))).toBe(false);
});
