import { expect, it } from 'vitest';
import { ApiError } from '$lib/api/client';
import type { Uploaded } from '$lib/api/types';
import { uploadAddress } from './requests';
import { OFFLINE } from './sending';
import { Uploads } from './uploads.svelte';

const file = (path: string) => ({ path, file: new File(['words'], path) });
const taken: Uploaded = { items: [{} as never], refused: [] };
const isGone = new ApiError(0, 'offline', OFFLINE);

it('brings files in under their names', async () => {
  const addresses: string[] = [];
  const uploads = new Uploads((address, _, progress) => {
    addresses.push(address);
    progress(3);
    return Promise.resolve(taken);
  });
  await uploads.add('p', [file('a b.md'), file('c.md')], true);
  expect(addresses).toEqual(['/api/projects/p/files?path=a+b.md', '/api/projects/p/files?path=c.md']);
  expect(uploads.items).toEqual([]);
  expect(uploads.done.get('p')).toBe(2);
});

it('keeps what was refused, with the reason, until it is dismissed', async () => {
  const refused = [{ path: 'a.md', reason: 'No room.' }];
  const uploads = new Uploads(() => Promise.resolve({ items: [], refused }));
  await uploads.add('p', [file('a.md')], true);
  expect(uploads.items).toMatchObject([{ name: 'a.md', state: 'failed', problem: 'a.md: No room.' }]);
  uploads.dismiss(uploads.items[0]!.id);
  expect(uploads.items).toEqual([]);
});

it('waits with the others while the server cannot be reached, and goes on where it stopped', async () => {
  let isThere = false;
  const uploads = new Uploads(() => (isThere ? Promise.resolve(taken) : Promise.reject(isGone)));
  await uploads.add('p', ['a', 'b', 'c', 'd'].map(file), true);
  expect(uploads.items.slice(2)).toMatchObject([
    { state: 'failed', problem: OFFLINE, canRetry: true },
    { state: 'waiting' },
  ]);
  isThere = true;
  await uploads.resume();
  expect(uploads.items).toEqual([]);
});

it('goes on with the others when the one that was cut off is given up', async () => {
  const uploads = new Uploads((address) =>
    address.endsWith('a.md') ? Promise.reject(isGone) : Promise.resolve(taken),
  );
  await uploads.add('p', [file('a.md'), file('b.md')], true);
  uploads.dismiss(uploads.items[0]!.id);
  await uploads.resume();
  expect(uploads.items).toEqual([]);
});

it('tries again what the server could not take just then, not what it refused', async () => {
  const answers = [new ApiError(503, 'busy', 'Busy.'), new ApiError(413, 'too_large', 'Too large.')];
  const uploads = new Uploads(() => Promise.reject(answers.shift()));
  await uploads.add('p', [file('a.md')], true);
  expect(uploads.items).toMatchObject([{ problem: 'Busy.', canRetry: true }]);
  await uploads.retry(uploads.items[0]!.id);
  expect(uploads.items).toMatchObject([{ problem: 'Too large.', canRetry: false }]);
});

it('shows each project its own', async () => {
  const uploads = new Uploads(() => Promise.reject(new ApiError(413, 'too_large', 'Too large.')));
  await uploads.add('p', [file('a.md')], true);
  expect(uploads.of('p')).toHaveLength(1);
  expect(uploads.of('q')).toEqual([]);
});

it('unpacks a zip only when asked to, into the folder it came in', () => {
  expect(uploadAddress('p', 'a.ZIP', true)).toBe('/api/projects/p/files?unzip=true');
  expect(uploadAddress('p', 'docs/a.zip', true)).toBe('/api/projects/p/files?unzip=true&path=docs%2F');
  expect(uploadAddress('p', 'a.zip', false)).toBe('/api/projects/p/files?path=a.zip');
});
