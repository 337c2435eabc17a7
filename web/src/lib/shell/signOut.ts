import { ApiError } from '../api/client';
import { store } from '$lib/live/store.svelte';
import { toast } from '../ui/toasts.svelte';

/** Signs out. A failure is shown, because the person may leave this device. */
export async function signOut(): Promise<void> {
  try {
    await store.signOut();
  } catch (reason) {
    const why = reason instanceof ApiError ? reason.message : '';
    toast({ text: `You are still signed in. ${why}`, tone: 'error' });
  }
}
