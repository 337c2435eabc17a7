/** The clipboard. Works even where the browser offers its clipboard API only on secure addresses. */
import { toast } from './toasts.svelte';

/** Copies the text and says in a toast whether that worked. */
export async function copyText(text: string): Promise<void> {
  const isCopied = await copy(text);
  toast(isCopied ? { text: 'Copied' } : { text: 'The browser did not let us copy.', tone: 'error' });
}

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'sr';
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  return isCopied;
}
