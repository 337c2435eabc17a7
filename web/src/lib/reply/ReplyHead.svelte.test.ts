import { mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ModelView, Voice } from '$lib/api/types';
import { voice } from '$lib/lanes/samples';
import { store } from '$lib/live/store.svelte';
import { provideProviderNames } from './providerNamesContext';
import ReplyHead from './ReplyHead.svelte';

const model = (key: string, display_name: string, provider_name: string) =>
  ({ key, display_name, provider_name, is_demo: false }) as ModelView;
const voiceOf = (name: string, key: string): Voice => ({ ...voice(1, name), model: key });

const first = voiceOf('GPT-4o', 'openai:gpt-4o');
const second = voiceOf('GPT-4o 2', 'router:gpt-4o');
const other = voiceOf('o9', 'openai:o9');

beforeEach(() => {
  store.models = [
    model('openai:gpt-4o', 'GPT-4o', 'OpenAI'),
    model('router:gpt-4o', 'GPT-4o', 'OpenRouter'),
    model('openai:o9', 'o9', 'OpenAI'),
  ];
});
afterEach(() => (store.models = []));

/** The tooltip of the name, and the line below it. */
function headOf(voice: Voice, round: Voice[]): (string | null | undefined)[] {
  const Card: typeof ReplyHead = (internals, props) => {
    provideProviderNames(() => round);
    return ReplyHead(internals, props);
  };
  const props = { voice, state: 'finished' as const, shown: 0, count: 1, isBare: false, onshow: () => {} };
  const head = mount(Card, { target: document.body, props, context: new Map() });
  const texts = [
    document.querySelector('h3')?.getAttribute('title'),
    document.querySelector('header p')?.textContent,
  ];
  void unmount(head);
  return texts;
}

describe('the head of a reply', () => {
  it('names the provider where another provider’s model has the same name', () => {
    expect(headOf(first, [first, second])).toEqual(['GPT-4o, OpenAI', 'OpenAI · gpt-4o']);
    expect(headOf(second, [first, second])).toEqual(['GPT-4o 2, OpenRouter', 'OpenRouter · gpt-4o']);
  });

  it('names the model alone where names differ', () => {
    expect(headOf(first, [first, other])).toEqual(['GPT-4o', 'gpt-4o']);
  });
});
