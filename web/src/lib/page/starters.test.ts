import { describe, expect, it } from 'vitest';
import type { ModelView, Persona } from '$lib/api/types';
import { ofModel, ofPersona } from '$lib/council/minds';
import { modeNamed } from '$lib/council/modes';
import { mindsFor, STARTERS } from './starters';

const DEMO = model('d:small', { is_demo: true });
const PERSONAS = [
  '0000000000000000000000SAGE',
  '0000000000000000000SKEPT1C',
  '0000000000000000STRATEG1ST',
].map((id) => ({ id, character: { name: id, hue: null, model: '' } }) as unknown as Persona);
const trust = STARTERS.find((each) => each.mode === 'brain_trust')!;

function model(key: string, change: Partial<ModelView> = {}): ModelView {
  return { key, provider: key[0], tier: 'fast', is_available: true, is_demo: false, ...change } as ModelView;
}

describe('a template', () => {
  it('seats as many different voices as it has dots, whatever was seated before, and can be asked', () => {
    const models = [DEMO, model('a:one'), model('a:two'), model('b:three')];
    for (const starter of STARTERS)
      for (const wanted of [[], [ofModel('d:small')], [ofModel('a:one'), ofModel('a:one')]]) {
        for (const personas of [[], PERSONAS]) {
          const minds = mindsFor(starter, wanted, { models, personas });
          expect(minds).toHaveLength(starter.minds);
          expect(minds).not.toContainEqual(ofModel('d:small'));
          expect(minds.length).toBeGreaterThanOrEqual(modeNamed(starter.mode).least);
        }
      }
  });

  it('keeps those who are seated, and fills up with personas, then other providers, then other models', () => {
    const models = [DEMO, model('a:one'), model('a:two'), model('b:three')];
    expect(mindsFor(trust, [ofModel('a:two')], { models, personas: PERSONAS.slice(0, 1) })).toEqual([
      ofModel('a:two'),
      ofPersona(PERSONAS[0]!.id),
      ofModel('a:one'),
    ]);
    expect(mindsFor(trust, [], { models, personas: [] })).toEqual([
      ofModel('a:one'),
      ofModel('b:three'),
      ofModel('a:two'),
    ]);
  });

  it('seats nobody while there is only the demo, or one voice alone', () => {
    expect(mindsFor(trust, [ofModel('d:small')], { models: [DEMO], personas: PERSONAS })).toEqual([]);
    expect(mindsFor(trust, [], { models: [DEMO, model('a:one')], personas: [] })).toEqual([]);
    expect(mindsFor(trust, [], { models: [DEMO, model('a:one')], personas: PERSONAS })).toHaveLength(3);
  });
});
