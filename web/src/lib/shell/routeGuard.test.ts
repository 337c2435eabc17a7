import { expect, it } from 'vitest';
import { afterSignIn, redirectFor, safeNext } from './routeGuard';

it('shows the door to whoever is out, and lets in whoever is in', () => {
  expect(redirectFor('out', '/c/1')).toBe('sign-in');
  expect(redirectFor('out', '/sign-in')).toBeNull();
  expect(redirectFor('set_up', '/')).toBe('set-up');
  expect(redirectFor('in', '/sign-in')).toBe('in');
  expect(redirectFor('in', '/set-up')).toBeNull();
  expect(redirectFor('in', '/c/1')).toBeNull();
});

it('remembers the page that was asked for', () => {
  expect(afterSignIn(new URL('http://house/c/1?at=2'))).toBe('?next=%2Fc%2F1%3Fat%3D2');
  expect(afterSignIn(new URL('http://house/'))).toBe('');
});

it('never leads to another server', () => {
  expect(safeNext('/c/1')).toBe('/c/1');
  for (const trick of [
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    'javascript:alert(1)',
    null,
  ])
    expect(safeNext(trick)).toBe('/');
});
