/** Attachments of a message: which are pictures, and which models cannot read pictures. */
import type { ModelView, Voice } from '$lib/api/types';

/** As many as one message takes. */
export const MOST = 20;

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

export const isPicture = (mimeType: string) => PICTURES.includes(mimeType);

export const addressOf = (id: string, rest = '') => `/api/attachments/${id}${rest}`;

/** "Alpha and Beta cannot see pictures. They are asked without sea.png." */
export function blindness(
  files: { name: string; mime_type: string }[],
  voices: Voice[],
  model: (key: string) => ModelView | undefined,
): string {
  const pictures = files.filter((file) => isPicture(file.mime_type)).map(({ name }) => name);
  const blind = voices.filter((voice) => model(voice.model)?.abilities.vision === false);
  if (!pictures.length || !blind.length) return '';
  const who = listed([...new Set(blind.map(({ name }) => name))]);
  const what = pictures.length > 2 ? `the ${pictures.length} pictures` : listed(pictures);
  return `${who} cannot see pictures. ${blind.length === 1 ? 'It is' : 'They are'} asked without ${what}.`;
}

function listed(names: string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
