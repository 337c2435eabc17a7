import { expect, it } from 'vitest';
import { uploadAddress } from './requests';
import { Uploads } from './uploads.svelte';

const file = (path: string) => ({ path, file: new File(['words'], path) });

it('brings files in one after the other, under their names', async () => {
  const addresses: string[] = [];
  const uploads = new Uploads((address, _, progress) => {
    addresses.push(address);
    progress(3);
    return Promise.resolve({ items: [], refused: [] });
  });
  await uploads.add('p', [file('a b.md'), file('c.md')], true);
  expect(addresses).toEqual(['/api/projects/p/files?path=a+b.md', '/api/projects/p/files?path=c.md']);
  expect(uploads.items).toEqual([]);
});

it('keeps what was refused, with the reason, until it is dismissed', async () => {
  const refused = [{ path: 'a.md', reason: 'No room.' }];
  const uploads = new Uploads(() => Promise.resolve({ items: [], refused }));
  await uploads.add('p', [file('a.md')], true);
  expect(uploads.items).toMatchObject([{ name: 'a.md', problem: 'a.md: No room.' }]);
  uploads.dismiss(uploads.items[0]!.id);
  expect(uploads.items).toEqual([]);
});

it('unpacks a zip only when asked to', () => {
  expect(uploadAddress('p', 'a.ZIP', true)).toBe('/api/projects/p/files?unzip=true');
  expect(uploadAddress('p', 'a.zip', false)).toBe('/api/projects/p/files?path=a.zip');
});
