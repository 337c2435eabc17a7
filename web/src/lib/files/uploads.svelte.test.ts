import { describe, expect, it } from 'vitest';
import { ApiError } from '$lib/api/client';
import type { ProjectFile, Uploaded } from '$lib/api/types';
import { uploadAddress } from './requests';
import { OFFLINE } from './uploadRequest';
import { UnfinishedUploads } from '$lib/live/unfinishedUploads.svelte';
import { Uploads } from './uploads.svelte';

const file = (path: string) => ({ path, file: new File(['words'], path) });
const taken: Uploaded = { items: [{} as never], refused: [] };
const keyOf = (address: string) => new URLSearchParams(address.split('?')[1]).get('upload_key')!;
const isGone = new ApiError(0, 'offline', OFFLINE);

it('brings files in under their names', async () => {
  const addresses: string[] = [];
  const uploads = new Uploads((address, _, progress) => {
    addresses.push(address);
    progress(3);
    return Promise.resolve(taken);
  });
  await uploads.add('p', [file('a b.md'), file('c.md')], true);
  expect(addresses.map((address) => address.split('&upload_key=')[0])).toEqual([
    '/api/projects/p/files?path=a+b.md',
    '/api/projects/p/files?path=c.md',
  ]);
  expect(new Set(addresses.map(keyOf)).size).toBe(2);
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
  const uploads = new Uploads(
    (address) => (address.includes('a.md') ? Promise.reject(isGone) : Promise.resolve(taken)),
    new UnfinishedUploads(() => Promise.resolve()),
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

describe('an upload that is cancelled', () => {
  /** Uploads that never end by themselves, and what the server is told. */
  function setUp() {
    const addresses: string[] = [];
    const told: string[] = [];
    const answers: ((answer: Uploaded | Error) => void)[] = [];
    const unfinishedUploads = new UnfinishedUploads((_, key) => Promise.resolve(void told.push(key)));
    const uploads = new Uploads((address) => {
      addresses.push(address);
      return new Promise((resolve, reject) =>
        answers.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer))),
      );
    }, unfinishedUploads);
    const brought = (key: string) => ({ upload_key: key, version: 1 }) as ProjectFile;
    return {
      uploads,
      addresses,
      told,
      answers,
      hides: (key: string) => unfinishedUploads.hides(brought(key)),
    };
  }

  it('is told to the server, which may have taken it already', () => {
    const { uploads, addresses, told, hides } = setUp();
    void uploads.add('p', [file('a.md')], true);
    const key = keyOf(addresses[0]!);
    expect(hides(key)).toBe(true);
    uploads.dismiss(uploads.items[0]!.id);
    expect(told).toEqual([key]);
    expect(uploads.items).toEqual([]);
    expect(hides(key)).toBe(true);
  });

  it('does not come back when its answer comes all the same', async () => {
    const { uploads, addresses, answers, hides } = setUp();
    const over = uploads.add('p', [file('a.md')], true);
    uploads.dismiss(uploads.items[0]!.id);
    answers[0]!(taken);
    await over;
    expect(hides(keyOf(addresses[0]!))).toBe(true);
    expect(uploads.done.get('p')).toBeUndefined();
  });

  it('is not sent, and not told, when it still waits for its turn', () => {
    const { uploads, addresses, told } = setUp();
    void uploads.add('p', ['a', 'b', 'c', 'd'].map(file), true);
    uploads.dismiss(uploads.items[3]!.id);
    expect(addresses).toHaveLength(3);
    expect(told).toEqual([]);
  });

  it('is told also when its answer was lost, and it waits to be sent again', async () => {
    const { uploads, addresses, told, answers } = setUp();
    const over = uploads.add('p', [file('a.md')], true);
    answers[0]!(isGone);
    await over;
    void uploads.retry(uploads.items[0]!.id);
    expect(addresses).toHaveLength(2);
    expect(keyOf(addresses[1]!)).toBe(keyOf(addresses[0]!));
    uploads.dismiss(uploads.items[0]!.id);
    expect(told).toEqual([keyOf(addresses[0]!)]);
  });

  it('is not what dismissing a refusal means: what came out of an archive stays', async () => {
    const { uploads, addresses, told, answers, hides } = setUp();
    const over = uploads.add('p', [file('a.zip')], true);
    answers[0]!({ items: [{} as never], refused: [{ path: 'b', reason: 'No.' }] });
    await over;
    uploads.dismiss(uploads.items[0]!.id);
    expect(told).toEqual([]);
    expect(hides(keyOf(addresses[0]!))).toBe(false);
  });
});

it('shows each project its own', async () => {
  const uploads = new Uploads(() => Promise.reject(new ApiError(413, 'too_large', 'Too large.')));
  await uploads.add('p', [file('a.md')], true);
  expect(uploads.of('p')).toHaveLength(1);
  expect(uploads.of('q')).toEqual([]);
});

it('unpacks a zip only when asked to, into the folder it came in', () => {
  const query = (name: string, unpack: boolean) => uploadAddress('p', name, unpack, 'key').split('?')[1];
  expect(query('a.ZIP', true)).toBe('unzip=true&upload_key=key');
  expect(query('docs/a.zip', true)).toBe('unzip=true&path=docs%2F&upload_key=key');
  expect(query('a.zip', false)).toBe('path=a.zip&upload_key=key');
});
