/** From key presses to commands: single presses, and two in a row such as "g p". Pure but for the clock. */
import type { Command } from './commands.svelte';

const PAIR_MS = 1200;

export interface Press {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
  altKey: boolean;
}

export class Keyboard {
  #first: { name: string; at: number } | null = null;

  constructor(
    private readonly isMac: boolean,
    private readonly now: () => number = () => Date.now(),
  ) {}

  /** The command these presses mean, if any. In a field only those with a modifier count. */
  find(press: Press, all: Command[], inField: boolean, letters: boolean): Command | undefined {
    const name = nameOf(press, this.isMac);
    const isPlain = !/(mod|ctrl|alt)\+/.test(name);
    if (isPlain && (inField || !letters)) {
      this.#first = null;
      return undefined;
    }
    const pair = this.#first && this.now() - this.#first.at < PAIR_MS ? `${this.#first.name} ${name}` : null;
    this.#first = { name, at: this.now() };
    const found = lookUp(all, pair) ?? lookUp(all, name);
    if (found) this.#first = null;
    return found;
  }
}

function lookUp(all: Command[], name: string | null): Command | undefined {
  if (name === null) return undefined;
  return all.findLast(
    (each) => each.run && each.keys?.split(',').some((keys) => same(keys, name)) && (each.when?.() ?? true),
  );
}

function same(keys: string, name: string): boolean {
  return keys.trim().toLowerCase() === name;
}

function nameOf(press: Press, isMac: boolean): string {
  const isMod = isMac ? press.metaKey : press.ctrlKey;
  const isLetter = /^[a-z]$/i.test(press.key);
  return [
    isMod && 'mod',
    isMac && press.ctrlKey && 'ctrl',
    press.altKey && 'alt',
    // "?" is already what Shift made of the key; a letter is not.
    press.shiftKey && (isLetter || press.key.length > 1) && 'shift',
    press.key.toLowerCase(),
  ]
    .filter(Boolean)
    .join('+');
}
