/** Makes a text area as tall as its text; style sheets set the least and the most. */
import type { Attachment } from 'svelte/attachments';

export function autosize(text: () => string | null): Attachment<HTMLTextAreaElement> {
  return (area) => {
    if (text() === null) return;
    area.style.height = '0';
    area.style.height = `${area.scrollHeight}px`;
    return () => (area.style.height = '');
  };
}
