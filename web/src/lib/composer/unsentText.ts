/** Unsent text of each conversation, stored on this device. */

const PREFIX = 'tertulia.unsent.';

export function unsentText(place: string): string {
  try {
    return localStorage.getItem(PREFIX + place) ?? '';
  } catch {
    return '';
  }
}

export function saveUnsentText(place: string, text: string): void {
  try {
    if (text) localStorage.setItem(PREFIX + place, text);
    else localStorage.removeItem(PREFIX + place);
  } catch {
    // They are lost with the page, as in any other field.
  }
}
