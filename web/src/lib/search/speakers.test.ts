import { expect, it } from 'vitest';
import type { Conversation, Hit, ModelView } from '$lib/api/types';
import { question, reply, voice } from '$lib/lanes/samples';
import { speakerOf, type Known } from './speakers';

const said = (speaker: string, heading = '') => ({ location: { speaker }, heading }) as Hit;
const nobody: Known = { message: undefined, conversation: undefined, models: [], nameOf: () => undefined };

it('is the mind as its table knows it, else as the models do, else as it was written down', () => {
  const sage = voice(3, 'Sage');
  const known = { ...nobody, models: [{ key: 'house:Sage', display_name: 'Sage 2' } as ModelView] };
  const conversation = { table: [voice(1), sage] } as Conversation;
  expect(speakerOf(said('agent:Sage'), { ...known, conversation })).toMatchObject({ name: 'Sage', seat: 3 });
  expect(speakerOf(said('agent:Sage'), { ...known, message: reply('m', sage) }).seat).toBe(3);
  expect(speakerOf(said('agent:Sage'), known)).toMatchObject({ name: 'Sage 2', seat: null });
  expect(speakerOf(said('agent:Sage'), nobody).name).toBe('Sage');
});

it('is a person by name where the message is at hand', () => {
  const nameOf = (id: string) => ({ u1: 'Priya' })[id];
  expect(speakerOf(said('user'), { ...nobody, nameOf, message: question() })).toMatchObject({
    name: 'Priya',
    isPerson: true,
  });
  expect(speakerOf(said('user'), nobody).name).toBe('A question');
});

it('is whoever was written down with it, where nothing else is at hand', () => {
  expect(speakerOf(said('user', 'Priya, née Rao, 16 November 2026'), nobody).name).toBe('Priya, née Rao');
  expect(speakerOf(said('agent:gpt-4o', 'The Sage, 16 November 2026'), nobody).name).toBe('The Sage');
});
