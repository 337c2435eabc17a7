import { expect, it } from 'vitest';
import { Batch } from './batching';
import type { Item } from './items';

it('hands over a burst at once and then at most every 50 ms, in order', () => {
  let now = 1000;
  const planned: { ms: number; run: () => void }[] = [];
  const flushed: Item[][] = [];
  const frames = new Batch(
    (items) => flushed.push(items),
    (ms, run) => planned.push({ ms, run }),
    () => now,
  );
  const delta = (number: number): Item => ({ type: 'delta', id: 'A', after: number - 1, number, text: '.' });

  frames.push([delta(1)]);
  frames.push([delta(2), delta(3)]);
  expect(planned).toHaveLength(1);
  planned.shift()!.run();
  expect(flushed).toEqual([[delta(1), delta(2), delta(3)]]);

  now += 10;
  frames.push([delta(4)]);
  expect(planned[0]!.ms).toBe(40);
});
