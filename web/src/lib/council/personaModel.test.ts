import { describe, expect, it } from 'vitest';
import type { PersonaProfile, ModelView } from '$lib/api/types';
import { personaModelText } from './personaModel';

const named = (key: string, display_name: string, unavailable_reason: string | null = null) =>
  ({
    key,
    display_name,
    tier: 'smart',
    is_available: unavailable_reason === null,
    unavailable_reason,
  }) as ModelView;

const sol = named('a:sol', 'Sol');
const keyless = named('b:sonnet', 'Sonnet', "Set ANTHROPIC_API_KEY to use Anthropic's models.");
const unfetched = named('c:small', 'Small', 'Run `tertulia models pull small` to fetch it.');

const text = (model: string, models: ModelView[]) =>
  personaModelText({ character: { model } as PersonaProfile }, models);

describe('the model of a persona', () => {
  it('is named alone when it is the persona’s own', () => {
    expect(text('a:sol', [sol, keyless])).toBe('Sol');
  });

  it('is another, with the reason, when its own cannot answer', () => {
    expect(text('b:sonnet', [sol, keyless])).toBe('uses Sol (Sonnet has no key)');
    expect(text('c:small', [sol, unfetched])).toBe('uses Sol (Small is not available)');
    expect(text('d:gone:7b', [sol])).toBe('uses Sol (gone:7b is unknown)');
    expect(text('', [sol])).toBe('uses Sol');
  });

  it('is named with its provider when both models have one name', () => {
    const [here, there] = [
      { ...sol, provider_name: 'Azure' },
      { ...keyless, display_name: 'Sol', provider_name: 'OpenAI' },
    ];
    expect(text('b:sonnet', [here, there])).toBe('uses Azure Sol (OpenAI Sol has no key)');
  });

  it('is missing while no model is ready', () => {
    expect(text('b:sonnet', [keyless])).toBe('not available: no model is ready yet');
  });
});
