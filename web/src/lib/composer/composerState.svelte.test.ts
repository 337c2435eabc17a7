import { beforeEach, describe, expect, it } from 'vitest';
import type { Model, Persona } from '$lib/api/types';
import { ofModel, ofPersona } from '$lib/council/minds';
import { modeNamed } from '$lib/council/modes';
import { PLAIN } from '$lib/council/initialSetting';
import { Composing } from './composerState.svelte';

const model = (key: string, is_available = true) =>
  ({ key, display_name: key.toUpperCase(), is_available, is_demo: false, tier: 'smart' }) as Model;
const sage = {
  id: 'sage',
  version: 2,
  character: { name: 'The Sage', hue: 3, model: 'b' },
} as Persona;
const guests = { models: [model('a'), model('b'), model('gone', false)], personas: [sage] };

describe('what is being written', () => {
  let composing: Composing;

  beforeEach(() => {
    localStorage.clear();
    composing = new Composing('c', guests, { ...PLAIN, minds: [ofModel('a'), ofModel('b')] });
    composing.text = 'Why?';
  });

  it('goes to everyone at the table', () => {
    expect(composing.said(7)).toMatchObject({ mode: 'parallel', aside: false, chair: null, brief: '' });
    expect(composing.said(7).table.map((each) => each.id)).toEqual(['a:0', 'b:0']);
    expect(composing.canSend).toBe(true);
  });

  it('goes to one alone who is named, at the table or not', () => {
    composing.text = '@b why?';
    expect(composing.said(7)).toMatchObject({ mode: 'quick', aside: true });
    expect(composing.said(7).table).toMatchObject([{ id: 'b:0', seat: 2 }]);
    expect(composing.asked(null)).toMatchObject({ aside: true, lanes: ['b:0'] });
    composing.text = '@The Sage and @a, why?';
    expect(composing.said(7)).toMatchObject({ mode: 'parallel', aside: true });
    expect(composing.asked(null).voices).toEqual([ofPersona('sage'), ofModel('a')]);
    expect(composing.voices).toHaveLength(2);
  });

  it('waits until a mode has the minds it takes, unless one is named', () => {
    composing.use({ ...PLAIN, mode: 'debate', minds: [ofModel('a')] });
    expect(composing.problem).toBe('Debate needs at least two voices. Add another.');
    expect(composing.canSend).toBe(false);
    composing.text = '@a why?';
    expect(composing.canSend).toBe(true);
  });

  it('says who cannot be asked', () => {
    composing.minds = [ofModel('gone')];
    expect(composing.problem).toMatch(/^GONE cannot answer now/);
    composing.minds = [ofPersona('left')];
    expect(composing.problem).toMatch(/no longer exists/);
  });

  it('has a chair where the mode has one: the first, one of the table, or somebody beside it', () => {
    expect(composing.presiding).toBeNull();
    composing.mode = modeNamed('brain_trust');
    composing.brief = ' Briefly. ';
    expect(composing.presiding?.id).toBe('a:0');
    expect(composing.said(7)).toMatchObject({ chair: null, brief: 'Briefly.' });
    composing.chair = ofModel('b');
    expect(composing.presiding).toBe(composing.voices[1]);
    composing.chair = ofPersona('sage');
    expect(composing.said(7).chair).toMatchObject({ name: 'The Sage', seat: 3, model: 'b' });
    expect(composing.asked(null).chair).toEqual(ofPersona('sage'));
  });
});
