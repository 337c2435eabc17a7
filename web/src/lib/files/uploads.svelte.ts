/** Files on their way in, one after the other, each with how much of it has gone. */
import { SvelteMap } from 'svelte/reactivity';
import type { Uploaded } from '$lib/api/types';
import type { Brought } from './dropped';
import { uploadAddress } from './requests';
import { sendFile, type Progress } from './sending';

export interface Upload {
  id: number;
  name: string;
  sent: number;
  size: number;
  /** Why it was not taken; null while it is on its way. */
  problem: string | null;
}

export type Send = (
  address: string,
  file: File,
  progress: Progress,
  signal: AbortSignal,
) => Promise<Uploaded>;

export class Uploads {
  items = $state.raw<Upload[]>([]);

  #calls = new SvelteMap<number, AbortController>();
  #last: Promise<void> = Promise.resolve();
  #next = 1;

  constructor(private readonly send: Send = sendFile) {}

  add(projectId: string, files: Brought[], unpack: boolean): Promise<void> {
    for (const { path: name, file } of files) {
      const upload: Upload = { id: this.#next++, name, sent: 0, size: file.size, problem: null };
      this.items = [...this.items, upload];
      this.#calls.set(upload.id, new AbortController());
      this.#last = this.#last.then(() => this.#bring(projectId, upload, file, unpack));
    }
    return this.#last;
  }

  /** Calls it off, or takes its problem away. */
  dismiss(id: number): void {
    this.#calls.get(id)?.abort();
    this.#calls.delete(id);
    this.items = this.items.filter((each) => each.id !== id);
  }

  async #bring(projectId: string, { id, name }: Upload, file: File, unpack: boolean): Promise<void> {
    const call = this.#calls.get(id);
    if (!call) return;
    try {
      const address = uploadAddress(projectId, name, unpack);
      const { refused } = await this.send(address, file, (sent) => this.#change(id, { sent }), call.signal);
      if (refused.length) throw new Error(refused.map(({ path, reason }) => `${path}: ${reason}`).join(' '));
      this.dismiss(id);
    } catch (reason) {
      this.#change(id, { problem: reason instanceof Error ? reason.message : 'It was not taken.' });
    }
  }

  #change(id: number, change: Partial<Upload>): void {
    this.items = this.items.map((each) => (each.id === id ? { ...each, ...change } : each));
  }
}
