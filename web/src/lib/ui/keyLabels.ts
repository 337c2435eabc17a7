/** Keys as people read them: "mod+k" is ⌘K on a Mac and Ctrl K elsewhere; "g p" is G, then P. */

const NAMES: Record<string, [mac: string, other: string]> = {
  mod: ['⌘', 'Ctrl'],
  shift: ['⇧', 'Shift'],
  alt: ['⌥', 'Alt'],
  enter: ['↵', '↵'],
  escape: ['esc', 'esc'],
  arrowup: ['↑', '↑'],
  arrowdown: ['↓', '↓'],
  arrowleft: ['←', '←'],
  arrowright: ['→', '→'],
};

export const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? '');

/** Returns a list of key labels for each press: [["⌘", "K"]], or [["G"], ["P"]]. */
export function caps(keys: string, mac: boolean = isMac): string[][] {
  return keys.split(' ').map((press) => press.split('+').map((key) => cap(key, mac)));
}

export function shownKeys(keys: string, mac: boolean = isMac): string {
  return caps(keys, mac)
    .map((press) => press.join(mac || press.every((each) => each.length === 1) ? '' : ' '))
    .join(' ');
}

function cap(key: string, mac: boolean): string {
  const named = NAMES[key.toLowerCase()];
  if (named) return mac ? named[0] : named[1];
  return key.length === 1 ? key.toUpperCase() : key;
}
