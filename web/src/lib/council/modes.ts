/** How voices take turns. A new mode is one more entry here, once the server knows it. */

export interface Mode {
  id: string;
  name: string;
  sentence: string;
  /** Which drawing stands for it. */
  picture: 'quick' | 'parallel';
  /** How many voices it seats. */
  most: number;
  /** More than one voice speaks, so it matters what each sees of the others. */
  isShared: boolean;
}

export const MODES: Mode[] = [
  {
    id: 'parallel',
    name: 'Parallel',
    sentence: 'Everyone answers at once, side by side',
    picture: 'parallel',
    most: 8,
    isShared: true,
  },
  { id: 'quick', name: 'Quick', sentence: 'One mind answers', picture: 'quick', most: 1, isShared: false },
];

export function modeNamed(id: string): Mode {
  return MODES.find((mode) => mode.id === id) ?? { ...MODES[0]!, id, name: id.replaceAll('_', ' ') };
}
