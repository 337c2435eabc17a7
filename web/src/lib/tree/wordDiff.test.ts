import { describe, expect, it } from 'vitest';
import { diffWords, type Piece } from './wordDiff';

const shown = (pieces: Piece[]) =>
  pieces.map(({ text, isOnlyHere }) => (isOnlyHere ? `[${text.trim()}]` : text.trim())).join(' ');
const whole = (pieces: Piece[]) => pieces.map(({ text }) => text).join('');

describe('two questions side by side', () => {
  it('mark the words the other has not', () => {
    const { left, right } = diffWords(
      'Should we bake more bread on Monday?',
      'Should we bake less bread on Monday, or none?',
    );
    expect(shown(left)).toBe('Should we bake [more] bread on [Monday?]');
    expect(shown(right)).toBe('Should we bake [less] bread on [Monday, or none?]');
  });

  it('are marked nowhere when they are the same, and nowhere when they share nothing', () => {
    expect(shown(diffWords('One and the same', 'One and the same').left)).toBe('One and the same');
    const apart = diffWords('Bread on Monday', 'Quite another thing');
    expect(shown(apart.left)).toBe('Bread on Monday');
    expect(shown(apart.right)).toBe('Quite another thing');
  });

  it('mark words and not the space after them', () => {
    const { left } = diffWords('rye or wheat on Mondays', 'rye or spelt on Mondays');
    expect(left.map(({ text }) => text)).toEqual(['rye or ', 'wheat', ' on Mondays']);
  });

  it('keep every letter and every line break', () => {
    const [a, b] = ['One,  two\n\nthree  four', '\tOne, two\nfive three  four '];
    const { left, right } = diffWords(a, b);
    expect([whole(left), whole(right)]).toEqual([a, b]);
  });

  it('find words that moved as added in one place and gone from another', () => {
    const { left, right } = diffWords('a b c d e', 'b c d e a');
    expect(shown(left)).toBe('[a] b c d e');
    expect(shown(right)).toBe('b c d e [a]');
  });

  it('are marked even when they are long, unless they differ in hundreds of words', () => {
    const long = (word: string, times: number) => `${'same '.repeat(700)}${`${word} `.repeat(times)}end`;
    const near = diffWords(long('x', 300), long('y', 300));
    expect(near.left.map(({ isOnlyHere }) => isOnlyHere)).toEqual([false, true, false]);
    const far = diffWords(long('x', 900), long('y', 900));
    expect(far.left.map(({ isOnlyHere }) => isOnlyHere)).toEqual([false]);
  });

  it('may be empty', () => {
    expect(diffWords('', '')).toEqual({ left: [], right: [] });
  });
});
