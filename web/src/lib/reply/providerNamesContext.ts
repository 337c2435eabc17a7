/** Svelte context: the provider of a model whose name repeats in the round. Set by the round, used by its cards. */
import { getContext, setContext } from 'svelte';
import type { Voice } from '$lib/api/types';
import { isModel, providersOfRepeatedNames } from '$lib/lanes/providerNames';
import { store } from '$lib/live/store.svelte';

type ProviderName = (voice: Voice) => string;

const KEY = Symbol('provider names');

export function provideProviderNames(voices: () => Voice[]): void {
  const providers = () => providersOfRepeatedNames(voices(), store.models);
  setContext<ProviderName>(KEY, (voice) => (isModel(voice) && providers().get(voice.model)) || '');
}

/** Empty for a voice whose name is enough. */
export function useProviderName(): ProviderName {
  return getContext<ProviderName | undefined>(KEY) ?? (() => '');
}
