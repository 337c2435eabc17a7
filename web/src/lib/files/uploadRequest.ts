/** Uploads one file with XMLHttpRequest, because fetch does not report upload progress. */
import { ApiError } from '$lib/api/client';

export type Progress = (sent: number) => void;

export function sendFile<T>(
  address: string,
  file: File,
  progress: Progress,
  signal: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    call.open('POST', address);
    call.responseType = 'json';
    call.setRequestHeader('content-type', 'application/octet-stream');
    call.upload.onprogress = (event) => progress(event.loaded);
    call.onload = () => {
      const answer = call.response as (T & { code?: string; message?: string }) | null;
      if (call.status === 201 && answer) return resolve(answer);
      const message = answer?.message ?? `The server answered with ${call.status}.`;
      reject(new ApiError(call.status, answer?.code ?? 'unexpected', message));
    };
    call.onerror = () => reject(new ApiError(0, 'offline', OFFLINE));
    call.onabort = () => reject(new ApiError(0, 'aborted', 'Cancelled'));
    signal.addEventListener('abort', () => call.abort());
    call.send(file);
  });
}

export const OFFLINE = 'The server cannot be reached.';

export interface Failure {
  problem: string;
  /** False when the server refused the file for good: sending it again cannot help. */
  canRetry: boolean;
}

export function whyNot(reason: unknown): Failure {
  if (!(reason instanceof ApiError)) return { problem: 'The upload failed.', canRetry: true };
  if (reason.status === 0) return { problem: OFFLINE, canRetry: true };
  return { problem: reason.message, canRetry: reason.status === 429 || reason.status >= 500 };
}
