import { describe, expect, it } from 'vitest';
import type { LeftOut, LeftOutReason, ModelView, Persona, SavedTable } from '$lib/api/types';
import { closingOf, costsOf, fullest, notShown, partsOf, sum } from './estimate';
import { pickerList } from './pickerList';
import { factsOf, ofModel, ofPersona, typicalCost } from './minds';
import { written } from './requests';
import { initialSetting, PLAIN, type SettingSources } from './initialSetting';
import { firstAvailable, canCome, firstTable, heldIn, seated, speakerFor } from './table';

function model(key: string, change: Partial<ModelView> = {}): ModelView {
  const [provider = '', model_id = ''] = key.split(':');
  return {
    key,
    provider,
    provider_name: provider.toUpperCase(),
    model_id,
    display_name: model_id,
    tier: 'balanced',
    context_window: 10_000,
    input_limit: 10_000,
    max_output_tokens: 1_000,
    prices: { input_micros: 1_000_000, cached_micros: null, output_micros: 2_000_000, written_micros: null },
    abilities: {
      tools: true,
      vision: false,
      streaming: true,
      thinking: false,
      code_execution: false,
      structured: false,
    },
    efforts: [],
    is_local: false,
    is_demo: false,
    is_available: true,
    unavailable_reason: null,
    ...change,
  };
}

function persona(id: string, hue: number): Persona {
  const character = {
    name: `Persona ${id}`,
    glyph: '',
    hue,
    instructions: '',
    model: '',
    tools: true,
    effort: null,
  };
  return {
    id,
    scope: 'all',
    owner_id: null,
    project_id: null,
    character,
    version: 3,
    created_at: 0,
    updated_at: 0,
  };
}

function personaWith(key: string): Persona {
  const plain = persona('P', 4);
  return { ...plain, character: { ...plain.character, model: key } };
}

describe('how much each at the table thinks', () => {
  const invitable = {
    models: [model('a:one', { efforts: ['low', 'high'] }), model('b:two')],
    personas: [
      {
        ...persona('P', 1),
        character: { ...persona('P', 1).character, model: 'a:one', effort: 'high' } as const,
      },
    ],
  };

  it('is what the seat says, where its model has that', () => {
    const minds = [ofModel('a:one'), { ...ofModel('a:one'), effort: 'low' as const }];
    expect(seated(minds, invitable).map((each) => each.effort)).toEqual([null, 'low']);
    const [plain] = seated([{ ...ofModel('b:two'), effort: 'low' }], invitable);
    expect([plain!.effort, plain!.wanted.effort]).toEqual([null, null]);
  });

  it('is what a persona says, unless its seat says otherwise', () => {
    const minds = [ofPersona('P'), { ...ofPersona('P'), effort: 'low' as const }];
    expect(seated(minds, invitable).map((each) => each.effort)).toEqual(['high', 'low']);
    expect(seated([{ ...ofPersona('P'), model: 'b:two' }], invitable)[0]!.effort).toBeNull();
  });
});

describe('the table', () => {
  const models = [
    model('a:one'),
    model('a:two'),
    model('b:three'),
    model('c:gone', { is_available: false }),
    model('d:small', { is_demo: true }),
  ];
  const invitable = { models, personas: [persona('P', 2), persona('Q', 2), persona('R', 1)] };

  it('seats voices as the server does: in order, the same model twice under two names', () => {
    expect(seated(['a:one', 'b:three', 'a:one'].map(ofModel), invitable)).toMatchObject([
      { id: 'a:one:0', seat: 1, name: 'one' },
      { id: 'b:three:0', seat: 2, name: 'three' },
      { id: 'a:one:1', seat: 3, name: 'one 2' },
    ]);
    expect(seated([ofModel('x:unknown:7b')], invitable)[0]!.name).toBe('unknown:7b');
  });

  it('gives a persona the seat of its colour where that is free, and the others the first free ones', () => {
    const minds = [ofModel('a:one'), ofPersona('P'), ofPersona('Q'), ofPersona('P')];
    expect(seated(minds, invitable)).toMatchObject([
      { id: 'a:one:0', seat: 1, persona_id: null, persona_version: null },
      { id: 'persona:P:0', seat: 2, name: 'Persona P', persona_id: 'P', persona_version: 3 },
      { id: 'persona:Q:0', seat: 3, name: 'Persona Q' },
      { id: 'persona:P:1', seat: 4, name: 'Persona P 2' },
    ]);
    const namesake = { ...persona('S', 4), character: { ...persona('P', 4).character } };
    const both = seated([ofPersona('P'), ofPersona('S')], {
      models,
      personas: [...invitable.personas, namesake],
    });
    expect(both.map((each) => each.name)).toEqual(['Persona P', 'Persona P 2']);
    // A persona is seated before a model that would have taken its place.
    expect(seated([ofModel('a:one'), ofPersona('R')], invitable).map((each) => each.seat)).toEqual([2, 1]);
    const table = seated([ofPersona('P')], invitable);
    expect(seated([ofPersona('P')], invitable, table)[0]).toMatchObject({ id: 'persona:P:1', seat: 1 });
  });

  it('keeps everyone in the seat they have in the conversation, as the server does', () => {
    const held = heldIn(
      { seats: [{ lane: 'a:one:0', seat: 1 }], table: seated(['a:one', 'b:three'].map(ofModel), invitable) },
      [
        {
          seats: [
            { lane: 'a:one:0', seat: 6 },
            { lane: 'a:two:0', seat: 4 },
          ],
        },
      ],
    );
    const seats = (...minds: Parameters<typeof seated>[0]) =>
      seated(minds, invitable, [], held).map((each) => each.seat);
    expect(seats(ofModel('b:three'))).toEqual([2]);
    expect(seats(ofModel('a:two'), ofModel('a:one'))).toEqual([4, 1]);
    // A persona whose colour is somebody's takes one that is nobody's.
    expect(seats(ofPersona('R'), ofModel('b:three'), ofModel('a:one'))).toEqual([3, 2, 1]);
    expect(seats(ofModel('a:one'), ofModel('a:one'))).toEqual([1, 3]);
    const full = new Map(Array.from({ length: 8 }, (_, n) => [`m:${n}:0`, n + 1] as const));
    expect(seated([ofModel('m:0'), ofModel('a:one')], invitable, [], full).map((each) => each.seat)).toEqual([
      1, 2,
    ]);
  });

  it('lets a persona speak through its model, or who comes closest where that cannot', () => {
    const own = { ...persona('P', 1), character: { ...persona('P', 1).character, model: 'b:three' } };
    expect(speakerFor(own, models)?.key).toBe('b:three');
    const gone = { ...own, character: { ...own.character, model: 'c:gone' } };
    const strong = [model('e:strong', { tier: 'smart' }), ...models];
    expect(speakerFor(gone, strong)?.key).toBe('a:one'); // of the same tier as the one that is gone
    const unknown = { ...own, character: { ...own.character, model: 'nobody:knows' } };
    expect(speakerFor(unknown, strong)?.key).toBe('e:strong');
    expect(speakerFor(own, models.slice(3))?.key).toBe('d:small');
    expect(speakerFor(own, [])).toBeUndefined();
  });

  it('knows who could be asked now', () => {
    expect(canCome(ofPersona('P'), invitable)).toBe(true);
    expect(canCome(ofPersona('unknown'), invitable)).toBe(false);
    expect(canCome(ofModel('c:gone'), invitable)).toBe(false);
    expect(canCome({ ...ofPersona('P'), model: 'a:one' }, invitable)).toBe(true);
    expect(canCome({ ...ofPersona('P'), model: 'c:gone' }, invitable)).toBe(false);
  });

  it('seats the three built-in personas when a model other than the demo is available', () => {
    const sage = persona('0000000000000000000000SAGE', 1);
    expect(firstAvailable({ models, personas: [sage] })).toEqual([ofPersona(sage.id)]);
    expect(firstAvailable({ models: models.slice(3), personas: [sage] })).toEqual([ofModel('d:small')]);
    expect(firstAvailable({ models, personas: [] })).toEqual([ofModel('a:one'), ofModel('b:three')]);
  });

  it('seats the wanted voices, else a model of each provider, else the demo', () => {
    expect(firstTable(['b:three', 'c:gone'], models)).toEqual(['b:three']);
    expect(firstTable([], models)).toEqual(['a:one', 'b:three']);
    expect(firstTable(['c:gone'], models.slice(3))).toEqual(['d:small']);
    expect(firstTable([], [])).toEqual([]);
  });
});

describe('a conversation begins', () => {
  const invitable = { models: [model('a:one'), model('b:two')], personas: [persona('P', 2)] };
  const table = (id: string, ...voices: SavedTable['voices']) =>
    ({
      ...PLAIN,
      id,
      voices,
      mode: 'brain_trust',
      visibility: 'own_lane',
      chair: voices[0],
      brief: 'Short',
    }) as never;
  const plain: SettingSources = {
    project: { default_table_id: null, default_models: ['b:two'], default_mode: 'relay' },
    defaults: { table_id: null, mode: null, visibility: null, voices: [] },
    tables: [table('ours', ofPersona('P'), ofModel('a:one')), table('mine', ofModel('b:two'))],
    last: null,
    instance: [],
  };
  const first = (habits: Partial<SettingSources>) => initialSetting({ ...plain, ...habits }, invitable);

  it('as the project has it, then as one has it oneself, then as it was last, then with what is at hand', () => {
    const ours = { ...plain.project!, default_table_id: 'ours' };
    const mine = { ...plain.defaults!, table_id: 'mine' };
    const last = { ...PLAIN, minds: [ofModel('a:one')] };
    expect(first({ project: ours, defaults: mine, last })).toEqual({
      minds: [ofPersona('P'), ofModel('a:one')],
      mode: 'brain_trust',
      visibility: 'own_lane',
      chair: ofPersona('P'),
      brief: 'Short',
    });
    expect(first({ defaults: mine, last }).minds).toEqual([ofModel('b:two')]);
    expect(first({ defaults: { ...plain.defaults!, voices: [ofModel('a:one')] } }).minds).toEqual(last.minds);
    expect(first({ last }).minds).toEqual([ofModel('a:one')]);
    expect(first({})).toEqual({ ...PLAIN, minds: [ofModel('b:two')], mode: 'relay' });
    expect(first({ project: null }).minds).toEqual([ofModel('a:one'), ofModel('b:two')]);
  });

  it('with the instance’s models where neither a person nor the project has chosen', () => {
    const project = { ...plain.project!, default_models: [] };
    expect(first({ project, instance: ['b:two'] }).minds).toEqual([ofModel('b:two')]);
    expect(first({ project, instance: ['b:two'] }).mode).toBe('relay');
    expect(first({ project, instance: ['c:gone'] }).minds).toEqual([ofModel('a:one'), ofModel('b:two')]);
    expect(first({ instance: ['a:one'] }).minds).toEqual([ofModel('b:two')]);
  });

  it('with the demo alone only while nothing else is ready, wherever it was kept', () => {
    const demo = model('d:small', { is_demo: true });
    const alone = { ...PLAIN, minds: [ofModel('d:small')] };
    const kept: Partial<SettingSources>[] = [
      { project: { ...plain.project!, default_models: ['d:small'] } },
      { project: { ...plain.project!, default_models: ['d:small', 'c:gone'] } },
      { project: { ...plain.project!, default_models: [] }, last: alone },
      { project: { ...plain.project!, default_models: [] }, instance: ['d:small'] },
      {
        project: { ...plain.project!, default_models: [] },
        defaults: { ...plain.defaults!, voices: alone.minds },
      },
    ];
    for (const habits of kept) {
      const later = initialSetting(
        { ...plain, ...habits },
        { ...invitable, models: [demo, ...invitable.models] },
      );
      expect(later.minds).toEqual([ofModel('a:one'), ofModel('b:two')]);
      const before = initialSetting(
        { ...plain, ...habits },
        { models: [demo], personas: invitable.personas },
      );
      expect(before.minds).toEqual(alone.minds);
    }
    // Beside another model it was chosen on purpose.
    const both = { ...PLAIN, minds: [ofModel('d:small'), ofModel('a:one')] };
    const found = initialSetting(
      { ...plain, last: both },
      { ...invitable, models: [demo, ...invitable.models] },
    );
    expect(found.minds).toEqual(both.minds);
  });

  it('without those who left, and not at a table that nobody came to', () => {
    const half = { ...PLAIN, minds: [ofPersona('left'), ofModel('a:one')] };
    expect(first({ last: half }).minds).toEqual([ofModel('a:one')]);
    expect(first({ last: { ...PLAIN, minds: [ofPersona('left')] } }).minds).toEqual([ofModel('b:two')]);
  });
});

describe('the minds one can invite', () => {
  const models = [
    model('a:alpha', { is_available: false }),
    model('b:beta', { tier: 'fast' }),
    model('b:gamma', { is_available: false }),
    model('b:delta'),
  ];

  const named = (typed: string, some = models, personas: ReturnType<typeof persona>[] = []) =>
    pickerList({ models: some, personas }, typed);
  const shown = (typed: string, some = models) =>
    named(typed, some).groups.map((group) => [group.name, group.items.map((item) => item.name)]);

  it('are grouped by who serves them, and what cannot be used stands behind one row', () => {
    expect(shown('')).toEqual([['B', ['beta', 'delta']]]);
    expect(named('').rest.map((each) => each.name)).toEqual(['alpha', 'gamma']);
    expect(named('').restName).toBe('2 more not available');
    const reason = "Set OPENAI_API_KEY to use OpenAI's models.";
    const locked = ['a:x', 'a:y'].map((key) =>
      model(key, { is_available: false, unavailable_reason: reason }),
    );
    expect(named('', [...locked, model('b:beta')]).restName).toBe('2 more with a key');
    expect(named('', [model('b:beta')]).restName).toBe('');
  });

  it('are personas first, with who speaks for each', () => {
    const { groups } = named('', models, [persona('P', 4)]);
    expect(groups[0]).toMatchObject({
      name: 'Personas',
      items: [{ name: 'Persona P', about: 'uses delta', hue: 4, canCome: true, mind: ofPersona('P') }],
    });
    expect(groups[1]!.name).toBe('B');
    expect(named('', [], [persona('P', 4)]).rest[0]).toMatchObject({
      canCome: false,
      about: 'not available: no model is ready yet',
    });
  });

  it('say why another model answers for a persona', () => {
    const { groups } = named('', models, [personaWith('a:alpha')]);
    expect(groups[0]!.items[0]!.about).toBe('uses delta (alpha is not available)');
  });

  it('have a persona that the demo answers for last, as they have the demo', () => {
    const demo = model('z:small', { is_demo: true });
    const isDemo = (some: ModelView[]) =>
      named('', some, [personaWith('a:alpha')]).groups[0]!.items.map((item) => item.isDemo);
    expect(isDemo([models[0]!, demo])).toEqual([true]);
    expect(isDemo([...models, demo])).toEqual([false]);
    const ofDemo = named('', [demo, model('b:beta')], [personaWith('z:small')]);
    expect(ofDemo.groups.map((group) => group.name)).toEqual(['B', 'Personas', 'Z']);
  });

  it('are one list while something is typed, an exact name first', () => {
    const many = ['a:new-mini', 'b:mini-large', 'c:the mini', 'd:mini'].map((key) => model(key));
    expect(shown('Mini', many)).toEqual([['', ['mini', 'mini-large', 'the mini', 'new-mini']]]);
    expect(shown('B fast')).toEqual([['', ['beta']]]);
    expect(shown('nobody')).toEqual([]);
    expect(named('gamma').restName).toBe('1 more not available');
  });

  it('name who serves them where names repeat, and while something is typed', () => {
    const twins = [model('a:twin'), model('b:twin'), model('b:one')];
    const about = named('', twins).groups.flatMap((group) => group.items.map((item) => item.about));
    expect(about.map((each) => each.split(' · ')[0])).toEqual(['A', 'B', 'balanced']);
    expect(named('one', twins).groups[0]!.items[0]!.about).toMatch(/^B · /);
  });

  it('have the demo last', () => {
    const demo = model('z:small', { is_demo: true });
    expect(shown('', [demo, model('b:beta')])).toEqual([
      ['B', ['beta']],
      ['Z', ['small']],
    ]);
    expect(shown('s', [demo, model('b:also')])).toEqual([['', ['also', 'small']]]);
  });

  it('say what they hold and what a reply usually costs', () => {
    expect(factsOf(models[1]!)).toBe('fast · 10.0k');
    expect(typicalCost(models[1]!)).toBe('$0.0058');
    const unknown = { input_micros: null, cached_micros: null, output_micros: null, written_micros: null };
    expect(typicalCost(model('c:x', { prices: unknown }))).toBe('');
  });
});

describe('the estimate', () => {
  const voices = seated(['a:one', 'b:two'].map(ofModel), { models: [], personas: [] });
  const item = {
    voice: voices[0]!,
    input_tokens: 250,
    budget_tokens: 1_000,
    output_tokens: 500,
    cost_micros: 3,
    problem: null,
    left_out: [],
    always_tokens: 0,
  };
  const other = { ...item, voice: voices[1]!, cost_micros: 5 };

  it('says how full each mind will be, and what the round will cost', () => {
    const parts = partsOf({ items: [item, other], cost_micros: 8 }, voices);
    expect(parts.map((part) => part.fill)).toEqual([0.25, 0.25]);
    expect(sum(parts)).toEqual({ micros: 8, isPartial: false });
  });

  it('counts the chair, if it is this one', () => {
    const closing = { ...item, cost_micros: 9 };
    expect(closingOf({ chair: closing }, voices[0]!)).toMatchObject({ micros: 9, fill: 0.25 });
    expect(closingOf({ chair: closing }, voices[1]!)).toBeUndefined();
    expect(closingOf({ chair: null }, null)).toBeUndefined();
  });

  it('is told answer by answer, and the synthesis last', () => {
    const parts = partsOf({ items: [item, other], cost_micros: 8 }, voices);
    const costs = costsOf(parts, voices, parts[0], voices[1]!);
    expect(costs.map(({ voice, isClosing, tokens }) => [voice.name, isClosing, tokens])).toEqual([
      ['one', false, 250],
      ['two', false, 250],
      ['two', true, 250],
    ]);
    expect(costsOf(parts, voices, undefined, null)).toHaveLength(2);
  });

  it('keeps the known part of the price where one voice has no known price', () => {
    const parts = partsOf({ items: [item, { ...other, cost_micros: null }], cost_micros: null }, voices);
    expect(sum(parts)).toEqual({ micros: item.cost_micros, isPartial: true });
  });

  it('shows a mind that cannot hold it as full, with the reason', () => {
    const over = { ...item, input_tokens: 0, budget_tokens: 0, cost_micros: 0, problem: 'Too long.' };
    const [part] = partsOf({ items: [over, other], cost_micros: 5 }, voices);
    expect(part).toEqual({ micros: 0, tokens: 0, fill: 1, problem: 'Too long.' });
  });

  it('names what a mind will not be shown, once for all who are not shown it', () => {
    const left = (file_name: string, reason: LeftOutReason, note = '') =>
      ({ layer: 'question', reason, note, round_number: 1, location: { file_name } }) as LeftOut;
    const left_out = [left('long.txt', 'over_budget'), left('sea.png', 'no_vision')];
    const locked = left('a.pdf', 'unreadable', 'It is locked.');
    const items = [
      { ...item, left_out },
      { ...other, left_out: [...left_out, locked] },
    ];
    expect(notShown({ items })).toBe(
      'one and two are not shown long.txt: over the budget. two is not shown a.pdf: It is locked.',
    );
    expect(notShown(null)).toBe('');
  });

  it('shows the files that always come along as a part of the message they take most of', () => {
    const small = { ...other, always_tokens: 60, budget_tokens: 100 };
    expect(fullest([{ ...item, always_tokens: 70 }, small])).toEqual({ always: 60, budget: 100 });
    expect(fullest([item, { ...small, problem: 'Too long.' }])).toBeNull();
  });

  it('says nothing about another table than the one it was asked for', () => {
    expect(partsOf({ items: [item], cost_micros: 3 }, voices)).toEqual([]);
    expect(partsOf({ items: [item, other], cost_micros: 8 }, voices.toReversed())).toEqual([]);
    expect(sum(partsOf(null, voices))).toBeUndefined();
  });
});

describe('a table is kept', () => {
  const chosen = { ...PLAIN, minds: ['a', 'b'].map(ofModel), chair: ofModel('b'), brief: 'Short.' };

  it('with its chair where its mode has one', () => {
    expect(written('Ours', { ...chosen, mode: 'brain_trust' })).toMatchObject({
      voices: chosen.minds,
      chair: chosen.chair,
      brief: 'Short.',
    });
  });

  it('without the chair and the minds that another mode had', () => {
    expect(written('Ours', { ...chosen, mode: 'parallel' })).toMatchObject({ chair: null, brief: '' });
    expect(written('Ours', { ...chosen, mode: 'quick' }).voices).toEqual([ofModel('a')]);
  });
});
