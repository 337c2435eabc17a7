/** Attachments not sent yet, remembered on this device beside the words they go with. */
import type { Attachment } from '$lib/api/types';

const PREFIX = 'tertulia.attached.';
/** The server forgets them a day after they came. */
const KEPT_MS = 86_400_000;

export interface Kept {
  projectId: string;
  at: number;
  attachment: Attachment;
}

export function keptAt(place: string, now: number = Date.now()): Kept[] {
  try {
    const all = JSON.parse(localStorage.getItem(PREFIX + place) ?? '[]') as Kept[];
    return all.filter(({ at }) => now - at < KEPT_MS);
  } catch {
    return [];
  }
}

/** What another page of this place has kept meanwhile stays. */
export function keep(place: string, projectId: string, attachment: Attachment, now = Date.now()): void {
  const others = keptAt(place, now).filter((each) => each.attachment.id !== attachment.id);
  write(place, [...others, { projectId, at: now, attachment }]);
}

export function forget(place: string, id: string): void {
  write(
    place,
    keptAt(place).filter(({ attachment }) => attachment.id !== id),
  );
}

function write(place: string, all: Kept[]): void {
  try {
    if (all.length) localStorage.setItem(PREFIX + place, JSON.stringify(all));
    else localStorage.removeItem(PREFIX + place);
  } catch {
    // They are lost with the page; the server sweeps them.
  }
}
