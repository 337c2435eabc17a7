/** Everyone one can invite, as the picker lists them: personas first, then models by who serves them. */
import type { Model, Persona } from '$lib/api/types';
import { factsOf, groupsOf, keyOf, ofModel, ofPersona, personasNamed, typicalCost, type Mind } from './minds';
import { speakerFor, type Guests } from './table';

export interface Invitation {
  mind: Mind;
  /** The same word for the same mind. */
  key: string;
  name: string;
  /** Who speaks for it, or what it is; or why it cannot come. */
  about: string;
  cost: string;
  canCome: boolean;
  /** The colour a persona is known by. */
  hue: number | null;
  glyph: string;
}

export interface Invitations {
  name: string;
  items: Invitation[];
}

export function invitationsTo({ models, personas }: Guests, typed: string): Invitations[] {
  const named = personasNamed(personas, typed).map((each) => ofOne(each, models));
  const first = named.length ? [{ name: 'Personas', items: named }] : [];
  const rest = groupsOf(models, typed).map((group) => ({
    name: group.name,
    items: group.models.map(itself),
  }));
  return [...first, ...rest];
}

function ofOne({ id, character }: Persona, models: Model[]): Invitation {
  const mind = ofPersona(id);
  const speaker = speakerFor({ character }, models);
  return {
    mind,
    key: keyOf(mind),
    name: character.name,
    about: speaker?.display_name ?? 'not available: no model is ready yet',
    cost: speaker ? typicalCost(speaker) : '',
    canCome: speaker !== undefined,
    hue: character.hue,
    glyph: character.glyph,
  };
}

function itself(model: Model): Invitation {
  const mind = ofModel(model.key);
  return {
    mind,
    key: keyOf(mind),
    name: model.display_name,
    about: model.is_available ? factsOf(model) : (model.unavailable_reason ?? 'not available'),
    cost: model.is_available ? typicalCost(model) : '',
    canCome: model.is_available,
    hue: null,
    glyph: '',
  };
}
