import { describe, expect, it } from 'vitest';
import type { Model } from '$lib/api/types';
import { partsOf, sum } from './estimate';
import { factsOf, groupsOf, typicalCost } from './minds';
import { firstTable, seated } from './table';

function model(key: string, change: Partial<Model> = {}): Model {
  const [provider = '', model_id = ''] = key.split(':');
  return {
    key,
    provider,
    provider_name: provider.toUpperCase(),
    model_id,
    display_name: model_id,
    tier: 'balanced',
    context_window: 10_000,
    max_output_tokens: 1_000,
    prices: { input_micros: 1_000_000, cached_micros: null, output_micros: 2_000_000 },
    abilities: { tools: true, vision: false, streaming: true, thinking: false, code_execution: false },
    is_local: false,
    is_demo: false,
    is_available: true,
    unavailable_reason: null,
    ...change,
  };
}

describe('the table', () => {
  const models = [
    model('a:one'),
    model('a:two'),
    model('b:three'),
    model('c:gone', { is_available: false }),
    model('d:small', { is_demo: true }),
  ];
  const find = (key: string) => models.find((each) => each.key === key);

  it('seats voices as the server does: in order, the same model twice under two names', () => {
    expect(seated(['a:one', 'b:three', 'a:one'], find)).toMatchObject([
      { id: 'a:one:0', seat: 1, name: 'one' },
      { id: 'b:three:0', seat: 2, name: 'three' },
      { id: 'a:one:1', seat: 3, name: 'one 2' },
    ]);
    expect(seated(['x:unknown:7b'], find)[0]!.name).toBe('unknown:7b');
  });

  it('is laid with what was wanted, else one of each house, else the demo', () => {
    expect(firstTable(['b:three', 'c:gone'], models)).toEqual(['b:three']);
    expect(firstTable([], models)).toEqual(['a:one', 'b:three']);
    expect(firstTable(['c:gone'], models.slice(3))).toEqual(['d:small']);
    expect(firstTable([], [])).toEqual([]);
  });
});

describe('the minds one can invite', () => {
  const models = [
    model('a:alpha', { is_available: false }),
    model('b:beta', { tier: 'fast' }),
    model('b:gamma', { is_available: false }),
    model('b:delta'),
  ];

  it('are grouped by house, those that can come first', () => {
    expect(
      groupsOf(models, '').map((group) => [group.name, group.models.map((each) => each.model_id)]),
    ).toEqual([
      ['B', ['beta', 'delta', 'gamma']],
      ['A', ['alpha']],
    ]);
  });

  it('are found by every word typed, in any of their names', () => {
    expect(groupsOf(models, 'B fast')[0]!.models.map((each) => each.model_id)).toEqual(['beta']);
    expect(groupsOf(models, 'nobody')).toEqual([]);
  });

  it('say what they hold and what a reply usually costs', () => {
    expect(factsOf(models[1]!)).toBe('fast · 10.0k');
    expect(typicalCost(models[1]!)).toBe('$0.0058');
    const unknown = { input_micros: null, cached_micros: null, output_micros: null };
    expect(typicalCost(model('c:x', { prices: unknown }))).toBe('');
  });
});

describe('the estimate', () => {
  const voices = seated(['a:one', 'b:two'], () => undefined);
  const item = {
    voice: voices[0]!,
    input_tokens: 250,
    budget_tokens: 1_000,
    output_tokens: 500,
    cost_micros: 3,
    problem: null,
  };
  const other = { ...item, voice: voices[1]!, cost_micros: 5 };

  it('says how full each mind will be, and what the round will cost', () => {
    const parts = partsOf({ items: [item, other], cost_micros: 8 }, voices);
    expect(parts.map((part) => part.fill)).toEqual([0.25, 0.25]);
    expect(sum(parts)).toBe(8);
  });

  it('knows no price for the round where one mind has none', () => {
    expect(
      sum(partsOf({ items: [item, { ...other, cost_micros: null }], cost_micros: null }, voices)),
    ).toBeNull();
  });

  it('shows a mind that cannot hold it as full, with the reason', () => {
    const over = { ...item, input_tokens: 0, budget_tokens: 0, cost_micros: 0, problem: 'Too long.' };
    const [part] = partsOf({ items: [over, other], cost_micros: 5 }, voices);
    expect(part).toEqual({ micros: 0, fill: 1, problem: 'Too long.' });
  });

  it('says nothing about another table than the one it was asked for', () => {
    expect(partsOf({ items: [item], cost_micros: 3 }, voices)).toEqual([]);
    expect(partsOf({ items: [item, other], cost_micros: 8 }, voices.toReversed())).toEqual([]);
    expect(sum(partsOf(null, voices))).toBeUndefined();
  });
});
