import { expect, it } from 'vitest';
import { titleOfQuestion } from './provisionalTitle';

it.each([
  ['**Why** is the sky blue? I always wondered.', 'Why is the sky blue?'],
  ['Keep sessions. Or not?', 'Keep sessions'],
  ['```py\nprint(snake_case)\n```', 'print(snake_case)'],
  ['\u200b', 'Question'],
  ['¿Qué pasó?\nDime más.', '¿Qué pasó?'],
  ['word '.repeat(40), 'word word word word word word word word word word word word…'],
  ['...', '...'],
])('%j is called %j', (question, title) => {
  expect(titleOfQuestion(question)).toBe(title);
});
