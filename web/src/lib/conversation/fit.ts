/** A text area as tall as its text; style sheets set the least and the most. */
import type { Attachment } from 'svelte/attachments';

export function fit(watched: () => unknown): Attachment<HTMLTextAreaElement> {
  return (area) => {
    watched();
    area.style.height = '0';
    area.style.height = `${area.scrollHeight}px`;
    return () => (area.style.height = '');
  };
}
