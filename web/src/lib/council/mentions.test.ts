import { describe, expect, it } from 'vitest';
import { addressed, handleOf, mentionsIn, namesFor, openMentionAt, put } from './mentions';

const known = ['The Sage', 'The Sage 2', 'The Skeptic', 'Claude Sonnet 4.5', 'Ægir'].map((name) => ({
  name,
}));
const [sage, second, skeptic, claude, aegir] = known;

describe('a mind is addressed', () => {
  it.each([
    ['@sage what now?', [sage]],
    ['What now, @The Sage?', [sage]],
    ['@THE SAGE and @skeptic, please', [sage, skeptic]],
    ['@sage and again @The Sage', [sage]],
    ['@The Sage 2: you', [second]],
    ['@claude-sonnet-4-5 go', [claude]],
    ['(@Claude Sonnet 4.5)', [claude]],
    ['@Ægir, @ægir', [aegir]],
  ])('in “%s”', (text, expected) => {
    expect(addressed(text, known)).toEqual(expected);
  });

  it.each(['me@sage.example', '@sagebrush', '@nobody', 'a@@sage', '@ sage', ''])('not in “%s”', (text) => {
    expect(addressed(text, known)).toEqual([]);
  });

  it('where the name stands, with its @', () => {
    expect(mentionsIn('So, @The Sage?', known)).toEqual([{ who: sage, start: 4, end: 13 }]);
  });

  it('by a handle as the server makes it', () => {
    expect(['The Sage', 'Dr. Who?', '  the  Ox '].map(handleOf)).toEqual(['sage', 'dr-who', 'ox']);
  });
});

describe('while a name is typed', () => {
  it('it is what stands between the @ and the caret', () => {
    expect(openMentionAt('Well, @th', 9)).toEqual({ start: 6, typed: 'th' });
    expect(openMentionAt('@', 1)).toEqual({ start: 0, typed: '' });
    expect(openMentionAt('@The S', 6)).toEqual({ start: 0, typed: 'The S' });
    expect(openMentionAt('me@sage', 7)).toBeNull();
    expect(openMentionAt('@th', 0)).toBeNull();
    expect(openMentionAt('@a\nb', 4)).toBeNull();
  });

  it('those are offered whose name goes on so', () => {
    expect(namesFor('', known)).toEqual(known);
    expect(namesFor('sk', known)).toEqual([skeptic]);
    expect(namesFor('the s', known)).toEqual([sage, second, skeptic]);
    expect(namesFor('sonnet', known)).toEqual([claude]);
    expect(namesFor('The Skeptic ', known)).toEqual([]);
  });

  it('it is put whole in the place of what was typed', () => {
    expect(put('Well, @th', 6, 9, '@The Sage')).toEqual({ text: 'Well, @The Sage ', caret: 16 });
    expect(put('@s what?', 0, 2, '@The Sage')).toEqual({ text: '@The Sage what?', caret: 10 });
  });
});
