import { expect, it, vi } from 'vitest';
import type { Citations } from './citations';
import { parse } from './parse';
import { BlockView } from './blockView';

function shown(text: string): { element: HTMLElement; view: BlockView } {
  const element = document.createElement('div');
  document.body.replaceChildren(element);
  const view = new BlockView(element);
  view.show(htmlOf(text), true);
  return { element, view };
}

const htmlOf = (text: string) => {
  const [block] = parse(text).blocks;
  return block?.kind === 'html' ? block.html : '';
};

const open = vi.fn();
const knowing = (...paths: string[]): Citations => ({
  find: (mark) => (mark.kind === 'file' && paths.includes(mark.path) ? { open, isOpen: false } : null),
});

it('become buttons where they name a file that is known, and stay words where they do not', () => {
  const { element, view } = shown('As [a.md:1-2] and [b.md:3] say.');
  view.cite(knowing('a.md'));
  expect(element.textContent).toBe('As a.md:1-2 and [b.md:3] say.\n');
  const button = element.querySelector('button')!;
  expect(button.title).toBe('Open a.md at lines 1 to 2');
  button.click();
  expect(open).toHaveBeenCalledOnce();
});

it('come and go with the files, and with what is open', () => {
  const { element, view } = shown('As [a.md:1-2] says.');
  view.cite(knowing());
  expect(element.querySelector('button')).toBeNull();
  view.cite({ find: () => ({ open, isOpen: true }) });
  expect(element.querySelector('button')!.className).toBe('on');
  view.cite(knowing());
  expect(element.textContent).toBe('As [a.md:1-2] says.\n');
});

it('stay the same button while more words come in', () => {
  const { element, view } = shown('As [a.md:1-2]');
  view.cite(knowing('a.md'));
  const button = element.querySelector('button');
  view.show(htmlOf('As [a.md:1-2] says, so it is'), false);
  view.cite(knowing('a.md'));
  expect(element.querySelector('button')).toBe(button);
  expect(element.textContent).toBe('As a.md:1-2 says, so it is\n');
});
