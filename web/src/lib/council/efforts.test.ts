import { describe, expect, it, vi } from 'vitest';
import type { Effort } from '$lib/api/types';
import { effortItems, thinkingWords } from './efforts';

describe('how much a model thinks', () => {
  it('is chosen among what the model has, and nothing chosen is a choice too', () => {
    const choose = vi.fn();
    const items = effortItems(['off', 'high'], 'high', choose);
    expect(items).toMatchObject([
      { label: 'Automatic', checked: false },
      { label: 'Off', checked: false },
      { label: 'High', checked: true },
    ]);
    for (const item of items) if (item !== 'separator') item.run();
    expect(choose.mock.calls).toEqual([[null], ['off'], ['high']]);
  });

  it.each<[Effort | null, string]>([
    [null, 'Thinking: automatic'],
    ['low', 'Thinking: low'],
  ])('is said in words: %s', (effort, words) => expect(thinkingWords(effort)).toBe(words));
});
