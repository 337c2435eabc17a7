/** Interrupted replies whose notice was dismissed. */

const KEY = 'tertulia.kept';
const MOST = 500;

export function isDismissed(id: string): boolean {
  return read().includes(id);
}

export function dismissNotice(id: string): void {
  try {
    localStorage.setItem(KEY, JSON.stringify([...read(), id].slice(-MOST)));
  } catch {
    // It will be offered again: no harm.
  }
}

function read(): string[] {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '[]') as string[];
  } catch {
    return [];
  }
}
