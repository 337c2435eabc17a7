/**
 * The list of the picker: personas first, then models by who serves them; once something is typed, all in one list with
 * the best match first. What cannot be used now stands apart.
 */
import type { ModelView, Persona } from '$lib/api/types';
import { TIERS } from '$lib/models/tiers';
import { factsOf, keyOf, ofModel, ofPersona, typicalCost, type Mind } from './minds';
import { personaModelText } from './personaModel';
import { speakerFor, type Invitable } from './table';

export interface PickerEntry {
  mind: Mind;
  /** A key that is equal for equal minds. */
  key: string;
  name: string;
  /** The model that answers for a persona, or the facts of a model; or why it cannot be asked. */
  about: string;
  cost: string;
  canCome: boolean;
  /** True for the demo model, which is used only when a person asks for it. */
  isDemo: boolean;
  /** The colour a persona is known by. */
  hue: number | null;
  glyph: string;
}

export interface Group {
  /** Empty while something is typed. */
  name: string;
  items: PickerEntry[];
}

export interface PickerList {
  groups: Group[];
  /** Entries that cannot be used now. */
  rest: PickerEntry[];
  /** "84 more with a key"; empty where there are none. */
  restName: string;
}

interface Candidate {
  item: PickerEntry;
  /** The texts that find it; the first is its name. */
  names: string[];
  group: string;
  lacksKey: boolean;
}

export function pickerList({ models, personas }: Invitable, typed: string): PickerList {
  const words = typed.trim().toLowerCase();
  const repeated = repeatedNames(models);
  const isNamed = (model: ModelView) => words !== '' || repeated.has(model.display_name);
  const all = [
    ...personas.map((persona) => ofOne(persona, models)),
    ...models.map((model) => itself(model, isNamed(model))),
  ];
  const found = words ? ranked(all, words) : all;
  const rest = found.filter(({ item }) => !item.canCome);
  return {
    groups: grouped(
      found.filter(({ item }) => item.canCome),
      words !== '',
    ),
    rest: rest.map(({ item }) => item),
    restName: restName(rest),
  };
}

/** The demo comes after what answers well. */
function grouped(found: Candidate[], isTyped: boolean): Group[] {
  const groups = new Map<string, PickerEntry[]>();
  for (const { item, group } of demoLast(found, ({ item }) => item.isDemo)) {
    const name = isTyped ? '' : group;
    groups.set(name, [...(groups.get(name) ?? []), item]);
  }
  return [...groups].map(([name, items]) => ({ name, items }));
}

function demoLast<T>(items: T[], isDemo: (item: T) => boolean): T[] {
  return [...items.filter((item) => !isDemo(item)), ...items.filter(isDemo)];
}

/** Exactly what was typed, then what begins with it, then a word that does, then all that holds every word. */
function ranked(all: Candidate[], typed: string): Candidate[] {
  return all
    .map((each) => ({ each, rank: rankOf(each.names, typed) }))
    .filter(({ rank }) => rank < NO_MATCH)
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ each }) => each);
}

const NO_MATCH = 4;

function rankOf(names: string[], typed: string): number {
  const lower = names.map((name) => name.toLowerCase());
  const [name = '', id = ''] = lower;
  if (name === typed || id === typed) return 0;
  if (name.startsWith(typed) || id.startsWith(typed)) return 1;
  if (` ${name}`.includes(` ${typed}`)) return 2;
  const whole = lower.join(' ');
  return typed.split(/\s+/).every((word) => whole.includes(word)) ? 3 : NO_MATCH;
}

function restName(rest: Candidate[]): string {
  if (!rest.length) return '';
  return rest.every(({ lacksKey }) => lacksKey)
    ? `${rest.length} more with a key`
    : `${rest.length} more not available`;
}

function repeatedNames(models: ModelView[]): Set<string> {
  const seen = new Set<string>();
  return new Set(
    models.map(({ display_name }) => display_name).filter((name) => seen.has(name) || !seen.add(name)),
  );
}

function ofOne({ id, character }: Persona, models: ModelView[]): Candidate {
  const mind = ofPersona(id);
  const speaker = speakerFor({ character }, models);
  const own = models.find((model) => model.key === character.model);
  return {
    item: {
      mind,
      key: keyOf(mind),
      name: character.name,
      about: personaModelText({ character }, models),
      cost: speaker ? typicalCost(speaker) : '',
      canCome: speaker !== undefined,
      isDemo: speaker?.is_demo ?? false,
      hue: character.hue,
      glyph: character.glyph,
    },
    names: [character.name, '', character.model],
    group: 'Personas',
    lacksKey: own !== undefined && needsKey(own),
  };
}

function itself(model: ModelView, isNamed: boolean): Candidate {
  const facts = [isNamed ? model.provider_name : '', factsOf(model)].filter(Boolean).join(' · ');
  return {
    item: {
      mind: ofModel(model.key),
      key: model.key,
      name: model.display_name,
      about: model.is_available ? facts : (model.unavailable_reason ?? 'not available'),
      cost: model.is_available ? typicalCost(model) : '',
      canCome: model.is_available,
      isDemo: model.is_demo,
      hue: null,
      glyph: '',
    },
    names: [model.display_name, model.model_id, model.provider_name, TIERS[model.tier]],
    group: model.provider_name,
    lacksKey: needsKey(model),
  };
}

function needsKey({ is_available, unavailable_reason }: ModelView): boolean {
  return !is_available && /_KEY\b|\bkey\b/i.test(unavailable_reason ?? '');
}
