/** The table before sending: assigns seats to the chosen voices as the server will. */
import type { Conversation, Effort, ModelView, Persona, Voice } from '$lib/api/types';
import { keyOf, ofModel, ofPersona, type Mind } from './minds';

export const SEATS = 8;

/** The models and personas that can be seated. */
export interface Invitable {
  models: ModelView[];
  personas: Persona[];
}

/** A voice as it will be, and how it is asked for. */
export interface Seated extends Voice {
  wanted: Mind;
}

/** The seats of a conversation, by lane, the oldest first. */
export type Held = ReadonlyMap<string, number>;

export const NOBODY: Held = new Map();

/** Seats minds as voices: equal names are told apart, and a voice with a seat in the conversation keeps it. */
export function seated(
  minds: Mind[],
  invitable: Invitable,
  taken: Voice[] = [],
  held: Held = NOBODY,
): Seated[] {
  const found = minds.map((mind) => inviteeOf(mind, invitable));
  const lanes = lanesOf(
    found.map((each) => each.lane),
    taken,
  );
  const places = placesOf(
    found.map(({ hue }, n) => ({ hue, lane: lanes[n]! })),
    taken.map((each) => each.seat),
    held,
  );
  const names = new Set(taken.map((each) => each.name));
  return found.map(({ lane: _lane, name: called, hue: _hue, ...rest }, n) => {
    const name = unused(called, names);
    names.add(name);
    return { id: lanes[n]!, seat: places[n]!, name, ...rest };
  });
}

/** Returns the seats held in a conversation, and those held in its branches by voices without a seat here. */
export function heldIn(
  conversation: Pick<Conversation, 'seats' | 'table'> | undefined,
  family: Pick<Conversation, 'seats'>[],
): Held {
  const own = new Map(conversation?.seats.map(({ lane, seat }) => [lane, seat]));
  for (const { id, seat } of conversation?.table ?? []) own.set(id, seat);
  for (const { lane, seat } of family.flatMap((each) => each.seats)) if (!own.has(lane)) own.set(lane, seat);
  return own;
}

/** The second GPT-4o of a table has a lane of its own. */
function lanesOf(wanted: string[], taken: Voice[]): string[] {
  const seen = new Map<string, number>();
  for (const { id } of taken) seen.set(laneOf(id), (seen.get(laneOf(id)) ?? 0) + 1);
  return wanted.map((lane) => {
    const nth = seen.get(lane) ?? 0;
    seen.set(lane, nth + 1);
    return `${lane}:${nth}`;
  });
}

function unused(name: string, names: Set<string>): string {
  let found = name;
  for (let number = 2; names.has(found); number++) found = `${name} ${number}`;
  return found;
}

interface Invitee extends Omit<Seated, 'id' | 'seat'> {
  lane: string;
  hue: number | null;
}

function inviteeOf(wanted: Mind, { models, personas }: Invitable): Invitee {
  const { model: key, persona_id } = wanted;
  if (persona_id === null) {
    const effort = effortOf(wanted.effort ?? null, key ?? '', models);
    const name = models.find((model) => model.key === key)?.display_name ?? nameOf(key ?? '');
    return {
      lane: key ?? '',
      name,
      model: key ?? '',
      persona_id,
      persona_version: null,
      letter: '',
      effort,
      hue: null,
      wanted: { ...wanted, effort },
    };
  }
  const persona = personas.find((persona) => persona.id === persona_id);
  const model = key ?? (persona && speakerFor(persona, models)?.key) ?? '';
  const chosen = effortOf(wanted.effort ?? null, model, models);
  return {
    lane: `persona:${persona_id}`,
    name: persona?.character.name ?? 'Deleted persona',
    model,
    persona_id,
    persona_version: persona?.version ?? null,
    letter: '',
    effort: chosen ?? effortOf(persona?.character.effort ?? null, model, models),
    hue: persona?.character.hue ?? null,
    wanted: { ...wanted, effort: chosen },
  };
}

/** Returns the wanted effort if the model supports it, else null. */
function effortOf(wanted: Effort | null, key: string, models: ModelView[]): Effort | null {
  const model = models.find((model) => model.key === key);
  return wanted && model?.efforts.includes(wanted) ? wanted : null;
}

/** "openai:gpt-4o" → "gpt-4o" */
export function nameOf(key: string): string {
  return key.slice(key.indexOf(':') + 1);
}

function laneOf(voiceId: string): string {
  return voiceId.slice(0, voiceId.lastIndexOf(':'));
}

/** Assigns seats as the server does; core/voices.py explains the rules. */
function placesOf(invitable: { lane: string; hue: number | null }[], taken: number[], held: Held): number[] {
  const kept = new Map<number, number>();
  const isTaken = (seat: number) => taken.includes(seat) || [...kept.values()].includes(seat);
  const keep = (n: number, seat: number | null | undefined) => {
    if (seat && !isTaken(seat)) kept.set(n, seat);
  };
  const somebodys = [...new Set(held.values())];
  invitable.forEach(({ lane }, n) => keep(n, held.get(lane)));
  invitable.forEach(({ hue }, n) => {
    if (!kept.has(n) && hue !== null && !somebodys.includes(hue)) keep(n, hue);
  });
  const nobodys = Array.from({ length: SEATS }, (_, n) => n + 1).filter((seat) => !somebodys.includes(seat));
  const free = [...nobodys, ...somebodys].filter((seat) => !isTaken(seat));
  return invitable.map((_, n) => kept.get(n) ?? free.shift() ?? SEATS);
}

const STRENGTH = ['smart', 'balanced', 'fast', 'cheap'];

/** The persona's own model; where it cannot answer, the one that comes closest. */
export function speakerFor(
  { character }: Pick<Persona, 'character'>,
  models: ModelView[],
): ModelView | undefined {
  const own = models.find((model) => model.key === character.model);
  if (own?.is_available) return own;
  const distance = (model: ModelView) => [
    Number(model.is_demo),
    Number(model.tier !== own?.tier),
    STRENGTH.indexOf(model.tier),
  ];
  return models
    .filter((model) => model.is_available)
    .toSorted((a, b) => compare(distance(a), distance(b)))[0];
}

function compare(a: number[], b: number[]): number {
  const n = a.findIndex((each, place) => each !== b[place]);
  return n < 0 ? 0 : a[n]! - b[n]!;
}

/** Whether it could be asked now. */
export function canCome({ model, persona_id }: Mind, { models, personas }: Invitable): boolean {
  const persona = personas.find((persona) => persona.id === persona_id);
  if (persona_id !== null && persona === undefined) return false;
  if (model !== null) return models.some((each) => each.key === model && each.is_available);
  return persona !== undefined && speakerFor(persona, models) !== undefined;
}

/** Tells whether only the demo model would answer although other models could. */
export function isDemoAlone(minds: Mind[], invitable: Invitable): boolean {
  const isDemo = ({ model, persona_id }: Mind) =>
    persona_id === null && invitable.models.some((each) => each.key === model && each.is_demo);
  return isServed(invitable) && minds.length > 0 && minds.every(isDemo);
}

/** Tells whether a model other than the demo is available. */
function isServed({ models }: Invitable): boolean {
  return models.some((model) => model.is_available && !model.is_demo);
}

/** A model of each provider; the demo model when there is no other. */
export function firstTable(wanted: string[], models: ModelView[], most: number = 3): string[] {
  const available = models.filter((model) => model.is_available);
  const known = wanted.filter((key) => available.some((model) => model.key === key));
  if (known.length) return known.slice(0, SEATS);
  const houses = new Map<string, string>();
  for (const model of available)
    if (!model.is_demo && !houses.has(model.provider)) houses.set(model.provider, model.key);
  const chosen = [...houses.values()].slice(0, most);
  return chosen.length ? chosen : available.slice(0, 1).map((model) => model.key);
}

/** The built-in personas; a person may have deleted them. */
const SEEDED = ['0000000000000000000000SAGE', '0000000000000000000SKEPT1C', '0000000000000000STRATEG1ST'];

/** Returns the table when none was chosen: the three built-in personas, once there is more than the demo model. */
export function firstAvailable(invitable: Invitable): Mind[] {
  const known = SEEDED.filter((id) => invitable.personas.some((persona) => persona.id === id)).map(ofPersona);
  return isServed(invitable) && known.length ? known : firstTable([], invitable.models).map(ofModel);
}

/**
 * Different voices for a template, the demo apart: those that are wanted already, the three built-in personas, a
 * model of each provider, then any other model. Fewer where there are not so many.
 */
export function differentMinds(wanted: Mind[], invitable: Invitable, most: number): Mind[] {
  if (!isServed(invitable)) return [];
  const providers = firstTable([], invitable.models, SEATS).map(ofModel);
  const ready = invitable.models.filter((model) => model.is_available).map((model) => ofModel(model.key));
  const minds = new Map(
    [...wanted, ...firstAvailable(invitable), ...providers, ...ready]
      .filter((mind) => canCome(mind, invitable) && !isDemoAlone([mind], invitable))
      .map((mind) => [keyOf(mind), mind]),
  );
  return [...minds.values()].slice(0, most);
}
