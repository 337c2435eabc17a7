import { beforeEach, describe, expect, it } from 'vitest';
import { markQuotes, wordsOf } from './annotations';

let root: HTMLElement;

beforeEach(() => {
  root = document.createElement('div');
  const first = document.createElement('p');
  first.append(
    'The gateway reads ',
    Object.assign(document.createElement('b'), { textContent: 'warm' }),
    ' sessions.',
  );
  const second = document.createElement('p');
  second.append('It has held since.');
  root.append(first, second);
});

const note = (number: number, quote: string) => ({ number, seat: 2, quote });

describe('quoted words', () => {
  it('are marked across emphasis, and carry their number at the end alone', () => {
    const { found } = markQuotes(root, [note(1, 'reads **warm** sessions')]);
    expect([...found]).toEqual([1]);
    const marks = [...root.querySelectorAll('mark')];
    expect(marks.map((mark) => mark.textContent).join('')).toBe('reads warm sessions');
    expect(marks.map((mark) => mark.dataset.n)).toEqual([undefined, undefined, '1']);
  });

  it('leave the text as it was, and all of it when the marks are taken off', () => {
    const before = root.innerHTML;
    const { undo } = markQuotes(root, [note(1, 'reads warm sessions'), note(2, 'held since')]);
    expect(root.textContent).toBe('The gateway reads warm sessions.It has held since.');
    undo();
    expect(root.innerHTML).toBe(before);
  });

  it('that do not stand there are not marked', () => {
    expect(markQuotes(root, [note(1, 'never said'), note(2, '')]).found.size).toBe(0);
    expect(root.querySelector('mark')).toBeNull();
  });

  it('are compared by their letters', () => {
    expect(wordsOf('a **b**\n`c`')).toBe('abc');
  });
});
