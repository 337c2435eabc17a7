import { expect, it } from 'vitest';
import type { Project } from '$lib/api/types';
import { scopeIn, scopeName } from './scopes';

function project(enabled: boolean, conversations: boolean): Pick<Project, 'settings'> {
  const retrieval_config = {
    enabled,
    chunk_size: 50,
    max_results: 10,
    scope: { files: true, conversations },
  };
  return { settings: { retrieval_config } as Project['settings'] };
}

it('is what the project says until a person chooses otherwise', () => {
  expect(scopeIn(project(true, false), null)).toEqual({ files: true, conversations: false });
  const chosen = { files: false, conversations: true };
  expect(scopeIn(project(true, false), chosen)).toEqual(chosen);
});

it('is nothing to choose where the project has search off', () => {
  expect(scopeIn(project(false, true), { files: true, conversations: true })).toBeNull();
});

it('is called by what is searched', () => {
  expect(scopeName({ files: true, conversations: true })).toBe('Search: all');
  expect(scopeName({ files: true, conversations: false })).toBe('Search: files');
  expect(scopeName({ files: false, conversations: true })).toBe('Search: conversations');
  expect(scopeName({ files: false, conversations: false })).toBe('Search: off');
});
