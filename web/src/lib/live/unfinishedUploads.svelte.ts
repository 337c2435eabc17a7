/**
 * Unfinished uploads of this tab: the server has not confirmed them. Their files are not shown.
 *
 *   under way ─▶ settled (the server answered: what it took is shown)
 *           └─▶ cancelled (never shown; the server is told until it has heard)
 */
import { SvelteSet } from 'svelte/reactivity';
import { ApiError, request } from '../api/client';
import type { ProjectFile } from '../api/types';

interface Cancelled {
  projectId: string;
  key: string;
}

/** Sent even when the page closes. */
const cancelUpload = (projectId: string, key: string) =>
  request('DELETE', `/api/projects/${projectId}/uploads/${key}`, undefined, { keepalive: true });

export class UnfinishedUploads {
  #keys = new SvelteSet<string>();
  #untold: Cancelled[] = [];

  constructor(private readonly tell: typeof cancelUpload = cancelUpload) {}

  /** Begins an upload; a retried upload keeps its key, since its first attempt may have arrived. */
  begin(key: string): void {
    this.#keys.add(key);
  }

  settle(key: string): void {
    this.#keys.delete(key);
  }

  /** Whether the server has saved one under way cannot be known here; it takes back what it has. */
  async cancel(projectId: string, key: string): Promise<void> {
    if (!this.#keys.has(key)) return;
    this.#untold.push({ projectId, key });
    await this.resume();
  }

  /** Tells the server, once the connection is back, of the uploads cancelled while offline. */
  async resume(): Promise<void> {
    const untold = this.#untold;
    this.#untold = [];
    await Promise.all(untold.map((each) => this.#tellOf(each)));
  }

  /** A file that was there before the upload stays in sight. */
  hides(file: ProjectFile): boolean {
    return file.version === 1 && !!file.upload_key && this.#keys.has(file.upload_key);
  }

  async #tellOf(cancelled: Cancelled): Promise<void> {
    try {
      await this.tell(cancelled.projectId, cancelled.key);
    } catch (reason) {
      const isRefused = reason instanceof ApiError && reason.status >= 400 && reason.status < 500;
      if (!isRefused || reason.status === 429) this.#untold.push(cancelled);
    }
  }
}

export const unfinishedUploads = new UnfinishedUploads();
