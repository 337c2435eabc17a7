import { describe, expect, it, vi } from 'vitest';
import { shownKeys } from '$lib/ui/keyLabels';
import type { Command } from './commands.svelte';
import { Keyboard, type Press } from './keyboard';
import { pieces, score } from './match';

const press = (key: string, more: Partial<Press> = {}): Press => ({
  key,
  ctrlKey: false,
  metaKey: false,
  shiftKey: false,
  altKey: false,
  ...more,
});
const command = (id: string, keys: string, more: Partial<Command> = {}): Command => ({
  id,
  title: id,
  group: 'Anywhere',
  keys,
  run: vi.fn(),
  ...more,
});

describe('keys', () => {
  const all = [
    command('palette', 'mod+k'),
    command('new', 'n'),
    command('project', 'g p'),
    command('receipt', 'r'),
    command('again', 'shift+r'),
    command('sheet', '?'),
    command('mind', 'ArrowLeft,h'),
  ];
  const found = (keyboard: Keyboard, pressed: Press, inField = false, letters = true) =>
    keyboard.find(pressed, all, inField, letters)?.id;

  it('mean their command, with ⌘ on a Mac and Ctrl elsewhere', () => {
    expect(found(new Keyboard(true), press('k', { metaKey: true }))).toBe('palette');
    expect(found(new Keyboard(true), press('k', { ctrlKey: true }))).toBeUndefined();
    expect(found(new Keyboard(false), press('k', { ctrlKey: true }))).toBe('palette');
  });

  it('tell R from ⇧R, and take ? as it is typed', () => {
    const keyboard = new Keyboard(false);
    expect(found(keyboard, press('r'))).toBe('receipt');
    expect(found(keyboard, press('R', { shiftKey: true }))).toBe('again');
    expect(found(keyboard, press('?', { shiftKey: true }))).toBe('sheet');
  });

  it('may come in pairs, if the second is not late', () => {
    let now = 0;
    const keyboard = new Keyboard(false, () => now);
    expect(found(keyboard, press('g'))).toBeUndefined();
    expect(found(keyboard, press('p'))).toBe('project');
    found(keyboard, press('g'));
    now += 5000;
    expect(found(keyboard, press('p'))).toBeUndefined();
  });

  it('have several names', () => {
    expect(found(new Keyboard(false), press('ArrowLeft'))).toBe('mind');
    expect(found(new Keyboard(false), press('h'))).toBe('mind');
  });

  it('rest in a field and when they are turned off, unless held with Ctrl', () => {
    const keyboard = new Keyboard(false);
    expect(found(keyboard, press('n'), true)).toBeUndefined();
    expect(found(keyboard, press('n'), false, false)).toBeUndefined();
    expect(found(keyboard, press('k', { ctrlKey: true }), true)).toBe('palette');
  });

  it('leave the browser its own: Ctrl+N is not N', () => {
    expect(found(new Keyboard(false), press('n', { ctrlKey: true }))).toBeUndefined();
  });

  it('go to the later of two, and past one that does not apply', () => {
    const list = [command('far', 'b'), command('near', 'b', { when: () => false })];
    expect(new Keyboard(false).find(press('b'), list, false, true)?.id).toBe('far');
    list.push(command('nearest', 'b'));
    expect(new Keyboard(false).find(press('b'), list, false, true)?.id).toBe('nearest');
  });

  it('are shown as people know them', () => {
    expect(shownKeys('mod+k', true)).toBe('⌘K');
    expect(shownKeys('mod+k', false)).toBe('Ctrl K');
    expect(shownKeys('g p', false)).toBe('G P');
  });
});

describe('finding by typing', () => {
  it('wants every word, in any order, with or without accents', () => {
    expect(score('Sessions or JWT before launch?', 'jwt sess')).toBeGreaterThan(0);
    expect(score('Sessions or JWT before launch?', 'jwt cookie')).toBe(0);
    expect(score('Señales de café', 'senales cafe')).toBeGreaterThan(0);
  });

  it('likes the beginning of a word better than its middle', () => {
    expect(score('Brain trust', 'tru')).toBeGreaterThan(score('Obtruding', 'tru'));
  });

  it('marks what was found', () => {
    expect(pieces('The September incident', 'inc sep')).toEqual([
      { text: 'The ', isHit: false },
      { text: 'Sep', isHit: true },
      { text: 'tember ', isHit: false },
      { text: 'inc', isHit: true },
      { text: 'ident', isHit: false },
    ]);
  });
});
