/** Unsent attachments, saved on this device beside the unsent text. */
import type { Attachment } from '$lib/api/types';

const PREFIX = 'tertulia.attached.';
/** The server forgets them a day after they came. */
const KEPT_MS = 86_400_000;

export interface SavedAttachment {
  projectId: string;
  at: number;
  attachment: Attachment;
}

export function savedAttachments(place: string, now: number = Date.now()): SavedAttachment[] {
  try {
    const all = JSON.parse(localStorage.getItem(PREFIX + place) ?? '[]') as SavedAttachment[];
    return all.filter(({ at }) => now - at < KEPT_MS);
  } catch {
    return [];
  }
}

/** Saves an attachment; attachments that another page saved for the same place stay. */
export function saveAttachment(
  place: string,
  projectId: string,
  attachment: Attachment,
  now = Date.now(),
): void {
  const others = savedAttachments(place, now).filter(
    (savedAttachment) => savedAttachment.attachment.id !== attachment.id,
  );
  write(place, [...others, { projectId, at: now, attachment }]);
}

export function forgetAttachment(place: string, id: string): void {
  write(
    place,
    savedAttachments(place).filter(({ attachment }) => attachment.id !== id),
  );
}

function write(place: string, all: SavedAttachment[]): void {
  try {
    if (all.length) localStorage.setItem(PREFIX + place, JSON.stringify(all));
    else localStorage.removeItem(PREFIX + place);
  } catch {
    // They are lost with the page; the server sweeps them.
  }
}
