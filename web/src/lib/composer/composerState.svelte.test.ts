import { beforeEach, describe, expect, it } from 'vitest';
import type { ModelView, Persona } from '$lib/api/types';
import { ofModel, ofPersona } from '$lib/council/minds';
import { modeNamed } from '$lib/council/modes';
import { PLAIN } from '$lib/council/initialSetting';
import { ComposerState } from './composerState.svelte';

const model = (key: string, is_available = true) =>
  ({ key, display_name: key.toUpperCase(), is_available, is_demo: false, tier: 'smart' }) as ModelView;
const sage = {
  id: 'sage',
  version: 2,
  character: { name: 'The Sage', hue: 3, model: 'b' },
} as Persona;
const invitable = { models: [model('a'), model('b'), model('gone', false)], personas: [sage] };

describe('what is being written', () => {
  let composer: ComposerState;

  beforeEach(() => {
    localStorage.clear();
    composer = new ComposerState('c', invitable, { ...PLAIN, minds: [ofModel('a'), ofModel('b')] });
    composer.text = 'Why?';
  });

  it('goes to everyone at the table', () => {
    expect(composer.newTurn(7)).toMatchObject({ mode: 'parallel', aside: false, chair: null, brief: '' });
    expect(composer.newTurn(7).table.map((each) => each.id)).toEqual(['a:0', 'b:0']);
    expect(composer.canSend).toBe(true);
  });

  it('goes to one alone who is named, at the table or not', () => {
    composer.text = '@b why?';
    expect(composer.newTurn(7)).toMatchObject({ mode: 'quick', aside: true });
    expect(composer.newTurn(7).table).toMatchObject([{ id: 'b:0', seat: 2 }]);
    expect(composer.estimateRequest(null)).toMatchObject({ aside: true, lanes: ['b:0'] });
    composer.text = '@The Sage and @a, why?';
    expect(composer.newTurn(7)).toMatchObject({ mode: 'parallel', aside: true });
    expect(composer.estimateRequest(null).voices).toEqual([ofPersona('sage'), ofModel('a')]);
    expect(composer.voices).toHaveLength(2);
  });

  it('waits until a mode has the minds it takes, unless one is named', () => {
    composer.use({ ...PLAIN, mode: 'debate', minds: [ofModel('a')] });
    expect(composer.problem).toBe('Debate needs at least two voices. Add another.');
    expect(composer.canSend).toBe(false);
    composer.text = '@a why?';
    expect(composer.canSend).toBe(true);
  });

  it('says who cannot be asked', () => {
    composer.minds = [ofModel('gone')];
    expect(composer.problem).toMatch(/^GONE cannot answer now/);
    composer.minds = [ofPersona('left')];
    expect(composer.problem).toMatch(/no longer exists/);
  });

  it('has a chair where the mode has one: the first, one of the table, or somebody beside it', () => {
    expect(composer.presiding).toBeNull();
    composer.mode = modeNamed('brain_trust');
    composer.brief = ' Briefly. ';
    expect(composer.presiding?.id).toBe('a:0');
    expect(composer.newTurn(7)).toMatchObject({ chair: null, brief: 'Briefly.' });
    composer.chair = ofModel('b');
    expect(composer.presiding).toBe(composer.voices[1]);
    composer.chair = ofPersona('sage');
    expect(composer.newTurn(7).chair).toMatchObject({ name: 'The Sage', seat: 3, model: 'b' });
    expect(composer.estimateRequest(null).chair).toEqual(ofPersona('sage'));
  });
});
