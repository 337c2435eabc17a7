/** Short messages in the corner: at most three, newest last; errors stay until they are put away. */
import type { IconComponent } from './icon';

export interface NewToast {
  text: string;
  tone?: 'plain' | 'error';
  icon?: IconComponent;
  action?: { label: string; run: () => void };
  /** How long it stays; 5, or 8 with an action. Errors stay. */
  seconds?: number;
}

export interface Toast extends NewToast {
  id: number;
}

const MOST = 3;

class Toasts {
  shown = $state.raw<Toast[]>([]);
  #count = 0;

  add(toast: NewToast): number {
    const id = ++this.#count;
    this.shown = [...this.shown, { ...toast, id }].slice(-MOST);
    return id;
  }

  remove(id: number): void {
    this.shown = this.shown.filter((each) => each.id !== id);
  }
}

export const toasts = new Toasts();

export function toast(toast: NewToast): number {
  return toasts.add(toast);
}

export function dismiss(id: number): void {
  toasts.remove(id);
}

export function lifeOf(toast: NewToast): number | null {
  if (toast.seconds !== undefined) return toast.seconds * 1000;
  if (toast.tone === 'error') return null;
  return toast.action ? 8000 : 5000;
}
