import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { draw } from './math';
import { BlockView } from './blockView';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  document.body.replaceChildren();
});

it('draws a formula once, although words come while it is being drawn', async () => {
  const element = document.body.appendChild(document.createElement('div'));
  const view = new BlockView(element);
  view.show('<p><span class="math">x_4^2</span> so</p>', false);
  vi.runAllTimers(); // the drawing begins
  view.show('<p><span class="math">x_4^2</span> so it is</p>', false);
  await draw('y', false); // drawn after it, so it is done
  expect(element.querySelectorAll('.katex')).toHaveLength(1);
  vi.runAllTimers();
  await draw('y', false);
  expect(element.querySelector('annotation')?.textContent).toBe('x_4^2');
});
