import { mount, unmount } from 'svelte';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ModelView, Persona } from '$lib/api/types';
import MindPicker from './MindPicker.svelte';

const WORD = 'Models and personas are called voices.';

const model = {
  key: 'a:one',
  provider_name: 'A',
  model_id: 'one',
  display_name: 'One',
  tier: 'fast',
  context_window: 10_000,
  prices: { input_micros: null, output_micros: null },
  is_available: true,
} as ModelView;
const persona = { id: 'P', character: { name: 'The Sage', hue: 4, glyph: '', model: 'a:one' } } as Persona;

beforeEach(() => {
  // jsdom has no popovers and no layout.
  HTMLElement.prototype.showPopover = () => {};
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
    },
  );
});

function pickerText(personas: Persona[]): string {
  const props = { open: true, anchor: document.body, models: [model], personas, present: {} };
  const picker = mount(MindPicker, {
    target: document.body,
    props: { ...props, isFull: false, onadd: () => {} },
  });
  const text = document.body.textContent;
  void unmount(picker);
  return text;
}

describe('the picker', () => {
  it('explains the word voice where it lists models and personas', () => {
    expect(pickerText([persona])).toContain(WORD);
  });

  it('does not explain it where it lists models alone', () => {
    const text = pickerText([]);
    expect(text).toContain('One');
    expect(text).not.toContain(WORD);
  });
});
