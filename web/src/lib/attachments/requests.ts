/** Requests that upload, delete and read attachments. */
import { request } from '$lib/api/client';
import type { Attachment, FileText, Uploaded } from '$lib/api/types';
import { uploadAddress } from '$lib/files/requests';
import { sendFile, type Progress } from '$lib/files/uploadRequest';
import { addressOf } from './attachments';

/** A file for one message. */
export function sendAttachment(
  projectId: string,
  name: string,
  file: File,
  key: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<Attachment> {
  const query = new URLSearchParams({ name, upload_key: key });
  const address = `/api/projects/${projectId}/attachments?${query}`;
  return sendFile<Attachment>(address, file, progress, signal);
}

/** A file for the project; its id there. */
export async function sendToProject(
  projectId: string,
  name: string,
  file: File,
  key: string,
  progress: Progress,
  signal: AbortSignal,
): Promise<string> {
  const address = uploadAddress(projectId, name, false, key);
  const { items, refused } = await sendFile<Uploaded>(address, file, progress, signal);
  if (!items[0]) throw new Error(refused[0]?.reason ?? 'The upload failed.');
  return items[0].id;
}

/** Only one that no message has taken. */
export const dropAttachment = (id: string) => request('DELETE', addressOf(id));

export const readAttachment = (id: string, from: number) =>
  request<FileText>('GET', addressOf(id, `/text?start_line=${from}`));
