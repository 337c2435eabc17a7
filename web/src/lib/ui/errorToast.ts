/** Error messages for requests: a toast says what was not done, and why. */
import { toast } from './toasts.svelte';

/** Waits for the request; if it fails, shows the sentence and the reason in a toast and does not throw. */
export async function withErrorToast(sentence: string, work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (reason) {
    const detail = reason instanceof Error ? reason.message : '';
    toast({ text: `${sentence} ${detail}`.trim(), tone: 'error' });
  }
}
