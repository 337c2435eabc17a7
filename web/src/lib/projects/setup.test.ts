import { expect, it } from 'vitest';
import type { Project } from '$lib/api/types';
import { changeOf, filledFrom, wrongIn } from './setup';

const project = {
  instructions: 'Be brief.',
  settings: {
    context_strategy: 'smart',
    max_context_tokens: 128_000,
    default_mode: 'parallel',
    retrieval_config: {
      enabled: true,
      chunk_size: 50,
      max_results: 10,
      scope: { files: true, conversations: false },
    },
  },
} as unknown as Project;

it('gives back what it was filled from, with what is not asked for here', () => {
  const { instructions, settings } = project;
  expect(changeOf(project, filledFrom(project))).toEqual({ instructions, settings });
});

it('says what is wrong beside its field, before the server would', () => {
  const filled = filledFrom(project);
  expect(wrongIn(filled)).toEqual({});
  const wrong = wrongIn({ ...filled, most: '999', lines: 'fifty', passages: '101' });
  expect(Object.keys(wrong)).toEqual(['most', 'lines', 'passages']);
});
