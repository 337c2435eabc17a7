import { describe, expect, it } from 'vitest';
import { providersOfRepeatedNames } from './providerNames';

const voice = (name: string, model: string, persona_id: string | null = null) => ({
  name,
  model,
  persona_id,
});
const model = (key: string, display_name: string, provider_name: string) => ({
  key,
  display_name,
  provider_name,
});

const models = [
  model('openai:gpt-4o', 'GPT-4o', 'OpenAI'),
  model('router:gpt-4o', 'GPT-4o', 'OpenRouter'),
  model('openai:o9', 'o9', 'OpenAI'),
];
const of = (...voices: ReturnType<typeof voice>[]) =>
  Object.fromEntries(providersOfRepeatedNames(voices, models));
const [first, second] = [voice('GPT-4o', 'openai:gpt-4o'), voice('GPT-4o 2', 'router:gpt-4o')];

describe('the providers of a round', () => {
  it('are named for models of the same name from different providers, and for no others', () => {
    expect(of(first, second, voice('o9', 'openai:o9'))).toEqual({
      'openai:gpt-4o': 'OpenAI',
      'router:gpt-4o': 'OpenRouter',
    });
  });

  it('are not named for the same model twice', () => {
    expect(of(first, voice('GPT-4o 2', 'openai:gpt-4o'))).toEqual({});
  });

  it('are not named for a persona or a hidden model', () => {
    expect(of(first, voice('The Sage', 'router:gpt-4o', 'P'))).toEqual({});
    expect(of(voice('Voice A', ''), voice('Voice A', ''))).toEqual({});
  });

  it('are read from the keys of models that are gone', () => {
    expect(of(voice('Old', 'a:old'), voice('Old', 'b:old'))).toEqual({ 'a:old': 'a', 'b:old': 'b' });
  });
});
