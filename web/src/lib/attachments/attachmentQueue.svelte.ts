/**
 * What is being attached to a message that is not sent yet, one file after the other.
 *
 *   waiting ─▶ uploading ─▶ done (remembered on this device until it is sent or removed)
 *                  └─▶ failed (refused or cut off: tried again or removed by the person)
 */
import { SvelteMap } from 'svelte/reactivity';
import type { Attachment } from '$lib/api/types';
import { ulid } from '$lib/api/ulid';
import type { DroppedFile } from '$lib/files/droppedFiles';
import { OFFLINE, whyNot } from '$lib/files/uploadRequest';
import { unfinishedUploads, type UnfinishedUploads } from '$lib/live/unfinishedUploads.svelte';
import { isPicture, addressOf, MOST } from './attachments';
import { forgetAttachment, saveAttachment, savedAttachments } from './savedAttachments';
import * as requests from './requests';

/** With this message alone, or among the project's files from now on. */
export type Into = 'message' | 'project';

export interface Item {
  key: number;
  projectId: string;
  into: Into;
  name: string;
  mime_type: string;
  size: number;
  sent: number;
  state: 'waiting' | 'uploading' | 'done' | 'failed';
  problem: string;
  /** Whether trying again could help. */
  canRetry: boolean;
  /** The attachment as the server returned it; null until the upload is done. */
  attachment: Attachment | null;
  fileId: string | null;
  /** The address of its picture; null when it has none. */
  picture: string | null;
}

export type Requests = typeof requests;

export class AttachmentQueue {
  items = $state.raw<Item[]>([]);
  isBusy = $derived(this.items.some(({ state }) => state === 'waiting' || state === 'uploading'));
  hasFailed = $derived(this.items.some(({ state, into }) => state === 'failed' && into === 'message'));
  /** The attachments that will be sent with the message. */
  ready = $derived(
    this.items.flatMap(({ into, attachment }) => (into === 'message' && attachment ? [attachment] : [])),
  );

  #files = new SvelteMap<number, File>();
  #calls = new SvelteMap<number, AbortController>();
  /** By which the server is told that an upload was cancelled. */
  #keys = new SvelteMap<number, string>();
  #last: Promise<void> = Promise.resolve();
  #next = 1;

  constructor(
    /** The conversation, or "new" for one that does not exist yet. */
    private readonly place: string,
    private readonly server: Requests = requests,
    private readonly ends: UnfinishedUploads = unfinishedUploads,
  ) {
    this.items = savedAttachments(place).map(({ projectId, attachment }) =>
      this.#known(projectId, attachment),
    );
  }

  bring(projectId: string, brought: DroppedFile[], into: Into = 'message'): void {
    for (const { path, file } of brought) {
      const item = this.#fresh(projectId, path, file, into);
      this.#files.set(item.key, file);
      this.#keys.set(item.key, ulid());
      this.items = [...this.items, item];
      if (item.state === 'waiting') this.#soon(item.key);
    }
  }

  retry(key: number): void {
    this.#change(key, { state: 'waiting', problem: '', sent: 0 });
    this.#soon(key);
  }

  /** The line is back: what only failed for want of it is tried again. */
  resume(): void {
    for (const { key, state, problem } of this.items)
      if (state === 'failed' && problem === OFFLINE) this.retry(key);
  }

  remove(key: number): void {
    const uploadKey = this.#keys.get(key);
    const item = this.#take(key);
    if (item && uploadKey) void this.ends.cancel(item.projectId, uploadKey);
    if (item?.attachment) {
      forgetAttachment(this.place, item.attachment.id);
      this.server.dropAttachment(item.attachment.id).catch(() => undefined); // the server sweeps it some day
    }
  }

  /** They went with their message. */
  clear(): void {
    for (const { key } of this.items) {
      const item = this.#take(key);
      if (item?.attachment) forgetAttachment(this.place, item.attachment.id);
    }
  }

  /** Puts the attachments of a withdrawn message back into the queue. */
  restore(projectId: string, attachments: Attachment[]): void {
    for (const attachment of attachments) {
      saveAttachment(this.place, projectId, attachment);
      this.items = [...this.items, this.#known(projectId, attachment)];
    }
  }

  /** A message is asked in one project: what was brought to another is brought there, if it is still at hand. */
  moveTo(projectId: string): void {
    for (const item of this.items) {
      if (item.projectId === projectId || item.into === 'project') continue;
      const file = this.#files.get(item.key);
      this.remove(item.key);
      if (file) this.bring(projectId, [{ path: item.name, file }]);
    }
  }

  #fresh(projectId: string, path: string, file: File, into: Into): Item {
    const isOver = into === 'message' && this.items.filter((item) => item.into === 'message').length >= MOST;
    return {
      key: this.#next++,
      projectId,
      into,
      name: into === 'project' ? path : path.slice(path.lastIndexOf('/') + 1),
      mime_type: file.type,
      size: file.size,
      sent: 0,
      state: isOver ? 'failed' : 'waiting',
      problem: isOver ? `A message can have up to ${MOST} files.` : '',
      canRetry: !isOver,
      attachment: null,
      fileId: null,
      picture: isPicture(file.type) ? URL.createObjectURL(file) : null,
    };
  }

  #known(projectId: string, attachment: Attachment): Item {
    const { id, name, mime_type, size_bytes } = attachment;
    return {
      key: this.#next++,
      projectId,
      into: 'message',
      name,
      mime_type,
      size: size_bytes,
      sent: size_bytes,
      state: 'done',
      problem: '',
      canRetry: false,
      attachment,
      fileId: null,
      picture: isPicture(mime_type) ? addressOf(id, '?inline=true') : null,
    };
  }

  #soon(key: number): void {
    this.#calls.set(key, new AbortController());
    this.#last = this.#last.then(() => this.#upload(key));
  }

  async #upload(key: number): Promise<void> {
    const [item, file, call] = [this.#find(key), this.#files.get(key), this.#calls.get(key)];
    const uploadKey = this.#keys.get(key);
    if (!item || !file || !call || !uploadKey || call.signal.aborted) return;
    this.#change(key, { state: 'uploading' });
    this.ends.begin(uploadKey);
    const { projectId, name, into } = item;
    const progress = (sent: number) => this.#change(key, { sent });
    try {
      if (into === 'project') {
        const fileId = await this.server.sendToProject(
          projectId,
          name,
          file,
          uploadKey,
          progress,
          call.signal,
        );
        if (call.signal.aborted) return;
        this.#change(key, { state: 'done', fileId });
      } else {
        const attachment = await this.server.sendAttachment(
          projectId,
          name,
          file,
          uploadKey,
          progress,
          call.signal,
        );
        if (call.signal.aborted) return;
        saveAttachment(this.place, projectId, attachment);
        this.#change(key, { state: 'done', attachment, mime_type: attachment.mime_type });
      }
      this.ends.settle(uploadKey);
    } catch (reason) {
      if (call.signal.aborted) return;
      const why = whyNot(reason);
      if (why.problem !== OFFLINE) this.ends.settle(uploadKey);
      this.#change(key, { state: 'failed', ...why });
    }
  }

  #find(key: number): Item | undefined {
    return this.items.find((item) => item.key === key);
  }

  #take(key: number): Item | undefined {
    const item = this.#find(key);
    this.#calls.get(key)?.abort();
    this.#calls.delete(key);
    this.#files.delete(key);
    this.#keys.delete(key);
    if (item?.picture?.startsWith('blob:')) URL.revokeObjectURL(item.picture);
    this.items = this.items.filter((item) => item.key !== key);
    return item;
  }

  #change(key: number, change: Partial<Item>): void {
    this.items = this.items.map((item) => (item.key === key ? { ...item, ...change } : item));
  }
}
