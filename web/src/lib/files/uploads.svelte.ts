/**
 * The upload queue of project files: a few at a time, independent of the page shown.
 *
 *   waiting ─▶ uploading ─▶ gone from here: it stands among the project's files
 *                  └─▶ failed (refused or cut off: tried again or dismissed by the person)
 */
import { SvelteMap } from 'svelte/reactivity';
import type { Uploaded } from '$lib/api/types';
import { ulid } from '$lib/api/ulid';
import type { DroppedFile } from './droppedFiles';
import { uploadAddress } from './requests';
import { OFFLINE, sendFile, whyNot, type Progress } from './uploadRequest';
import { unfinishedUploads, type UnfinishedUploads } from '$lib/live/unfinishedUploads.svelte';

export interface Upload {
  id: number;
  projectId: string;
  name: string;
  sent: number;
  size: number;
  state: 'waiting' | 'uploading' | 'failed';
  /** Why it was not taken. */
  problem: string;
  /** Whether trying again could help. */
  canRetry: boolean;
}

export type Send = (
  address: string,
  file: File,
  progress: Progress,
  signal: AbortSignal,
) => Promise<Uploaded>;

interface Parcel {
  file: File;
  address: string;
  /** By which the server is told that it was cancelled. */
  key: string;
  call: AbortController;
}

/** Many small ones wait for each other's answers otherwise. */
const AT_ONCE = 3;

export class Uploads {
  items = $state.raw<Upload[]>([]);
  /** Taken since there was last nothing to do, by project. */
  done = new SvelteMap<string, number>();

  #parcels = new SvelteMap<number, Parcel>();
  #running: Promise<void> | null = null;
  #next = 1;

  constructor(
    private readonly send: Send = sendFile,
    private readonly ends: UnfinishedUploads = unfinishedUploads,
  ) {}

  of(projectId: string): Upload[] {
    return this.items.filter((item) => item.projectId === projectId);
  }

  add(projectId: string, files: DroppedFile[], unpack: boolean): Promise<void> {
    const fresh = files.map(({ path, file }) => this.#fresh(projectId, path, file, unpack));
    if (!this.of(projectId).length) this.done.delete(projectId);
    this.items = [...this.items, ...fresh];
    return this.#go();
  }

  retry(...ids: number[]): Promise<void> {
    for (const id of ids) {
      const parcel = this.#parcels.get(id);
      if (!parcel) continue;
      parcel.call = new AbortController();
      this.#change(id, { state: 'waiting', sent: 0, problem: '' });
    }
    return this.#go();
  }

  /** The line is back: what only failed for want of it is tried again. */
  resume(): Promise<void> {
    const cut = this.items.filter(({ problem }) => problem === OFFLINE);
    return this.retry(...cut.map(({ id }) => id));
  }

  /** Cancels them, or takes their problems away. */
  dismiss(...ids: number[]): void {
    for (const item of this.items) if (ids.includes(item.id)) this.#cancel(item);
    this.#drop(...ids);
    void this.#go();
  }

  /** The server may have taken what it has not answered yet. */
  #cancel({ id, projectId }: Upload): void {
    const { call, key } = this.#parcels.get(id)!;
    call.abort();
    void this.ends.cancel(projectId, key);
  }

  #drop(...ids: number[]): void {
    for (const id of ids) this.#parcels.delete(id);
    this.items = this.items.filter((item) => !ids.includes(item.id));
  }

  #fresh(projectId: string, name: string, file: File, unpack: boolean): Upload {
    const id = this.#next++;
    const key = ulid();
    const address = uploadAddress(projectId, name, unpack, key);
    this.#parcels.set(id, { file, address, key, call: new AbortController() });
    return {
      id,
      projectId,
      name,
      sent: 0,
      size: file.size,
      state: 'waiting',
      problem: '',
      canRetry: false,
    };
  }

  #go(): Promise<void> {
    return (this.#running ??= this.#run().finally(() => (this.#running = null)));
  }

  async #run(): Promise<void> {
    addEventListener('beforeunload', stay);
    await Promise.all(Array.from({ length: AT_ONCE }, () => this.#work()));
    removeEventListener('beforeunload', stay);
  }

  async #work(): Promise<void> {
    for (let next = this.#waiting(); next; next = this.#waiting()) await this.#bring(next);
  }

  /** The others wait while the server cannot be reached: they would only fail one by one. */
  #waiting(): Upload | undefined {
    const isCut = this.items.some(({ problem }) => problem === OFFLINE);
    return isCut ? undefined : this.items.find(({ state }) => state === 'waiting');
  }

  async #bring({ id, projectId }: Upload): Promise<void> {
    const { address, file, key, call } = this.#parcels.get(id)!;
    this.#change(id, { state: 'uploading' });
    this.ends.begin(key);
    try {
      const { items, refused } = await this.send(
        address,
        file,
        (sent) => this.#change(id, { sent }),
        call.signal,
      );
      if (call.signal.aborted) return;
      this.ends.settle(key);
      this.done.set(projectId, (this.done.get(projectId) ?? 0) + items.length);
      if (!refused.length) return this.#drop(id);
      const problem = refused.map(({ path, reason }) => `${path}: ${reason}`).join(' ');
      this.#change(id, { state: 'failed', problem, canRetry: false });
    } catch (reason) {
      if (call.signal.aborted) return;
      const why = whyNot(reason);
      if (why.problem !== OFFLINE) this.ends.settle(key);
      this.#change(id, { state: 'failed', ...why });
    }
  }

  #change(id: number, change: Partial<Upload>): void {
    this.items = this.items.map((item) => (item.id === id ? { ...item, ...change } : item));
  }
}

/** The browser asks before it closes a page whose files are not up yet. */
function stay(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

export const uploads = new Uploads();
