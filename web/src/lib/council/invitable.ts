/** Who can be invited, as the house knows them now. */
import { house } from '$lib/live/store.svelte';
import type { Guests } from './table';

export const guests: Guests = {
  get models() {
    return house.models;
  },
  get personas() {
    return house.personasOf(house.project?.id ?? null);
  },
};
