/** The models and personas that can be invited now, read from the store. */
import { store } from '$lib/live/store.svelte';
import type { Invitable } from './table';

export const invitable: Invitable = {
  get models() {
    return store.models;
  },
  get personas() {
    return store.personasOf(store.project?.id ?? null);
  },
};
