import { expect, it } from 'vitest';
import { droppedFrom, chosenFrom } from './droppedFiles';

const words = (name: string) => new File(['words'], name);

/** As a browser hands over what was let go: entries, and folders that tell theirs in parts. */
function leaf(fullPath: string): FileSystemEntry {
  const file = words(fullPath.split('/').at(-1)!);
  return { isFile: true, fullPath, file: (resolve: (file: File) => void) => resolve(file) } as never;
}

function folder(...parts: FileSystemEntry[][]): FileSystemEntry {
  const rest = [...parts, []];
  const readEntries = (resolve: (some: FileSystemEntry[]) => void) => resolve(rest.shift()!);
  return { isFile: false, createReader: () => ({ readEntries }) } as never;
}

const letGo = (...entries: FileSystemEntry[]) =>
  ({
    items: entries.map((entry) => ({ kind: 'file', webkitGetAsEntry: () => entry })),
    files: [],
  }) as unknown as DataTransfer;

it('takes a folder with all that is in it, however many parts it tells it in', async () => {
  const inner = folder([leaf('/docs/deep/c.md')]);
  const brought = await droppedFrom(letGo(folder([leaf('/docs/a.md'), inner], [leaf('/docs/b.md')])));
  expect(brought.map(({ path }) => path)).toEqual(['docs/a.md', 'docs/deep/c.md', 'docs/b.md']);
});

it('takes plain files where the browser knows no entries', async () => {
  const transfer = { items: [], files: [words('a.md')] } as unknown as DataTransfer;
  expect((await droppedFrom(transfer)).map(({ path }) => path)).toEqual(['a.md']);
  expect(await droppedFrom(null)).toEqual([]);
});

it('keeps the folders of what was chosen', () => {
  const file = Object.assign(words('a.md'), {});
  Object.defineProperty(file, 'webkitRelativePath', { value: 'docs/a.md' });
  expect(chosenFrom([file] as unknown as FileList)[0]!.path).toBe('docs/a.md');
});

it('leaves what systems and version control put into folders', async () => {
  const inside = ['/site/.git/config', '/site/.DS_Store', '/site/.gitignore', '/site/index.html'];
  const brought = await droppedFrom(letGo(folder(inside.map(leaf))));
  expect(brought.map(({ path }) => path)).toEqual(['site/.gitignore', 'site/index.html']);
});
