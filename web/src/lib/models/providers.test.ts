import { expect, it } from 'vitest';
import type { ModelView } from '../api/types';
import { providersOf } from './providers';

const model = (provider: string, more: Partial<ModelView> = {}) =>
  ({
    provider,
    provider_name: provider,
    key: `${provider}:m`,
    is_available: true,
    is_local: false,
    ...more,
  }) as ModelView;

it('lists who can answer first, then what runs here, then the rest by name', () => {
  const providers = providersOf([
    model('Zeta', { is_available: false, unavailable_reason: 'Set ZETA_API_KEY.' }),
    model('Alpha', { is_available: false }),
    model('Built in', { is_available: false, is_local: true }),
    model('Mid'),
    model('Mid', { is_available: false }),
  ]);
  expect(providers.map((provider) => [provider.name, provider.available])).toEqual([
    ['Mid', 1],
    ['Built in', 0],
    ['Alpha', 0],
    ['Zeta', 0],
  ]);
  expect(providers.at(-1)!.reason).toBe('Set ZETA_API_KEY.');
});
