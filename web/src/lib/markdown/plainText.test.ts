import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { plainCut, plainLines, plainText } from './plainText';

type Case = [name: string, markdown: string, plain: string];

// The server keeps to the same: tests/core/test_markdown.py.
const CASES = JSON.parse(readFileSync('../tests/core/plain_text.json', 'utf8')) as Case[];

describe('plain text', () => {
  it.each(CASES)('%s', (_, markdown, plain) => {
    expect(plainText(markdown)).toBe(plain);
  });

  it('keeps words whole and drops their marks, however they are put together', () => {
    const random = seeded(7);
    const marks = ['@', '**@**', '*@*', '***@***', '`@`', '~~@~~', '$@$', '[@](https://example.org/)'];
    for (let n = 0; n < 300; n++) {
      const words = Array.from({ length: 1 + random(6) }, () => wordOf(random));
      const markdown = words.map((word) => marks[random(marks.length)]!.replace('@', () => word)).join(' ');
      expect(plainText(markdown), markdown).toBe(words.join(' '));
    }
  });

  it('keeps blocks apart, however they are put together', () => {
    const random = seeded(8);
    const marks = ['# @', '- @', '> @', '@', '1. @', '### @ ###'];
    for (let n = 0; n < 300; n++) {
      const words = Array.from({ length: 2 + random(5) }, () => wordOf(random));
      const markdown = words
        .map((word) => marks[random(marks.length)]!.replace('@', () => word))
        .join('\n\n');
      const shown = plainText(markdown).split(' ');
      expect(
        shown.map((word) => word.replace(/[.;]$/, '')),
        markdown,
      ).toEqual(words);
      expect(
        shown.slice(0, -1).every((word) => /[.;]$/.test(word)),
        markdown,
      ).toBe(true);
    }
  });

  it('is one line of no more than it may be, cut between words and within no character', () => {
    expect(plainText('One thing and **another** thing', 20)).toBe('One thing and…');
    expect(plainText('🌳'.repeat(20), 5)).toBe('🌳🌳…');
    const random = seeded(9);
    const parts = [
      '**',
      '_',
      '`',
      '$',
      '\n\n',
      '# ',
      '- ',
      '| ',
      '```',
      'word',
      ' ',
      '🌳',
      '<b>',
      '[x](',
      ')',
    ];
    for (let n = 0; n < 300; n++) {
      const markdown = Array.from({ length: random(40) }, () => parts[random(parts.length)]).join('');
      const plain = plainText(markdown, 30);
      expect(plain.length, markdown).toBeLessThanOrEqual(31);
      expect(plain, markdown).not.toMatch(/\n|[\uD800-\uDBFF]$/);
    }
  });

  it('of a very long text reads the beginning alone', () => {
    const words = plainText(`${'**word** '.repeat(200_000)}`, 40);
    expect(words).toBe('word word word word word word word word…');
  });

  it('leaves out what cannot be seen or turns the rest around', () => {
    expect(plainText('exe\u202E.txt')).toBe('exe.txt');
  });

  it('of all lines keeps the lines, and programs', () => {
    expect(plainLines('**One**\ntwo\n\n```py\na_b = 1\n```\n- three')).toBe('One\ntwo\na_b = 1\nthree');
  });

  it('of a piece cut from the middle drops halves of marks and keeps names', () => {
    expect(plainCut('sold** now and **then `my_var')).toBe('sold now and then my_var');
    expect(plainCut('| a_b | **c** |\n|---|---|')).toBe('a_b, c');
    expect(plainCut('x = _private\n```\nThen **that**')).toBe('x = _private. Then **that**');
  });
});

function wordOf(random: (below: number) => number): string {
  const part = () => Array.from({ length: 1 + random(5) }, () => 'abcdefxyz'[random(9)]).join('');
  return Array.from({ length: 1 + random(3) }, part).join('_');
}

function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}
