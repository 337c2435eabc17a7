import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '$lib/api/client';
import type { Attachment, ModelView, Voice } from '$lib/api/types';
import { blindness } from './attachments';
import { AttachmentQueue, type Requests } from './attachmentQueue.svelte';
import { UnfinishedUploads } from '$lib/live/unfinishedUploads.svelte';
import { savedAttachments } from './savedAttachments';
import { pastedFrom } from './clipboardFiles';

const DAY_MS = 86_400_000;

const brought = (path: string, type = 'text/plain') => ({ path, file: new File(['words'], path, { type }) });

function attachment(id: string, change: Partial<Attachment> = {}): Attachment {
  return {
    id,
    name: `${id}.md`,
    mime_type: 'text/plain',
    size_bytes: 5,
    content_hash: '',
    width: null,
    height: null,
    ...change,
  };
}

/** A server whose answers are given by hand, one upload at a time. */
function setUp(place = 'c1') {
  const asked: string[] = [];
  const dropped: string[] = [];
  const keys: string[] = [];
  const cancelled: string[] = [];
  const answers: ((answer: Attachment | string | Error) => void)[] = [];
  const sent = (path: string, _name: string, _file: File, key: string, progress: (sent: number) => void) => {
    keys.push(key);
    asked.push(path);
    progress(3);
    return new Promise<never>((resolve, reject) =>
      answers.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer as never))),
    );
  };
  const server = {
    sendAttachment: (project: string, ...rest: [string, File, string, (sent: number) => void]) =>
      sent(`${project}/${rest[0]}`, ...rest),
    sendToProject: (project: string, ...rest: [string, File, string, (sent: number) => void]) =>
      sent(`${project}/files/${rest[0]}`, ...rest),
    dropAttachment: (id: string) => Promise.resolve(void dropped.push(id)),
  } as unknown as Requests;
  const unfinishedUploads = new UnfinishedUploads((_, key) => Promise.resolve(void cancelled.push(key)));
  const attachmentQueue = new AttachmentQueue(place, server, unfinishedUploads);
  const states = () => attachmentQueue.items.map(({ name, state }) => `${name} ${state}`);
  const answer = async (said: Attachment | string | Error) => {
    await settled();
    answers.shift()!(said);
    await settled();
  };
  return { attachmentQueue, asked, dropped, keys, cancelled, states, answer };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));

beforeEach(() => {
  localStorage.clear();
  vi.stubGlobal('URL', Object.assign(URL, { createObjectURL: () => 'blob:x', revokeObjectURL: vi.fn() }));
});

describe('what is attached', () => {
  it('goes up one after the other, and is ready when it is there', async () => {
    const { attachmentQueue, asked, states, answer } = setUp();
    attachmentQueue.bring('p', [brought('docs/a.md'), brought('b.md')]);
    await settled();
    expect(states()).toEqual(['a.md uploading', 'b.md waiting']);
    expect(attachmentQueue.items[0]!.sent).toBe(3);
    expect(attachmentQueue.isBusy).toBe(true);
    await answer(attachment('A1'));
    expect(asked).toEqual(['p/a.md', 'p/b.md']);
    await answer(attachment('A2'));
    expect(attachmentQueue.isBusy).toBe(false);
    expect(attachmentQueue.ready.map(({ id }) => id)).toEqual(['A1', 'A2']);
  });

  it('is there again after a reload, until it is sent', async () => {
    const first = setUp();
    first.attachmentQueue.bring('p', [brought('a.md')]);
    await first.answer(attachment('A1'));
    const second = setUp();
    expect(second.states()).toEqual(['A1.md done']);
    expect(setUp('another').states()).toEqual([]);
    second.attachmentQueue.clear();
    expect(setUp().states()).toEqual([]);
    expect(second.dropped).toEqual([]);
  });

  it('that came by while the page was another is not lost', async () => {
    const left = setUp();
    left.attachmentQueue.bring('p', [brought('a.md')]);
    const back = setUp();
    back.attachmentQueue.bring('p', [brought('b.md')]);
    await back.answer(attachment('A2'));
    await left.answer(attachment('A1'));
    expect(setUp().states()).toEqual(['A2.md done', 'A1.md done']);
  });

  it('is not taken up again when the server has swept it', () => {
    const { attachmentQueue } = setUp();
    attachmentQueue.restore('p', [attachment('A1')]);
    expect(savedAttachments('c1')).toHaveLength(1);
    expect(savedAttachments('c1', Date.now() + DAY_MS)).toEqual([]);
  });

  it('is dropped at the server when it is removed, and its upload is called off', async () => {
    const { attachmentQueue, dropped, keys, cancelled, states, answer } = setUp();
    attachmentQueue.bring('p', [brought('a.md'), brought('b.md')]);
    await answer(attachment('A1'));
    attachmentQueue.remove(attachmentQueue.items[1]!.key);
    attachmentQueue.remove(attachmentQueue.items[0]!.key);
    expect(states()).toEqual([]);
    expect(dropped).toEqual(['A1']);
    expect(cancelled).toEqual([keys[1]]);
    await answer(attachment('A2')); // it was sent before it could be cancelled
    expect(states()).toEqual([]);
    expect(savedAttachments('c1')).toEqual([]);
  });

  it('says why it was refused, and holds nothing else up', async () => {
    const { attachmentQueue, states, answer } = setUp();
    attachmentQueue.bring('p', [brought('large.bin'), brought('b.md')]);
    await answer(new ApiError(413, 'too_large', 'A file holds at most 1 MiB.'));
    await answer(attachment('A2'));
    expect(states()).toEqual(['large.bin failed', 'b.md done']);
    expect(attachmentQueue.items[0]).toMatchObject({
      problem: 'A file holds at most 1 MiB.',
      canRetry: false,
    });
    expect(attachmentQueue.hasFailed).toBe(true);
  });

  it('is tried again by hand, or when the line is back', async () => {
    const { attachmentQueue, asked, states, answer } = setUp();
    attachmentQueue.bring('p', [brought('a.md')]);
    await answer(new ApiError(503, 'busy', 'Try again.'));
    expect(attachmentQueue.items[0]!.canRetry).toBe(true);
    attachmentQueue.resume();
    expect(asked).toHaveLength(1);
    attachmentQueue.retry(attachmentQueue.items[0]!.key);
    await answer(new ApiError(0, 'offline', 'No line.'));
    attachmentQueue.resume();
    await answer(attachment('A1'));
    expect(states()).toEqual(['a.md done']);
  });

  it('is never more than a message takes', async () => {
    const { attachmentQueue } = setUp();
    attachmentQueue.restore(
      'p',
      Array.from({ length: 20 }, (_, n) => attachment(`A${n}`)),
    );
    attachmentQueue.bring('p', [brought('more.md')]);
    expect(attachmentQueue.items.at(-1)).toMatchObject({
      state: 'failed',
      problem: 'A message can have up to 20 files.',
    });
    expect(attachmentQueue.ready).toHaveLength(20);
  });

  it('can go into the project instead, and then not with the message', async () => {
    const { attachmentQueue, asked, answer } = setUp();
    attachmentQueue.bring('p', [brought('docs/a.md')], 'project');
    await answer('F1');
    expect(asked).toEqual(['p/files/docs/a.md']);
    expect(attachmentQueue.items[0]).toMatchObject({ state: 'done', fileId: 'F1' });
    expect(attachmentQueue.ready).toEqual([]);
  });

  it('is brought along when the message is asked in another project', async () => {
    const { attachmentQueue, asked, dropped, answer } = setUp();
    attachmentQueue.bring('p', [brought('a.md')]);
    await answer(attachment('A1'));
    attachmentQueue.moveTo('p');
    attachmentQueue.moveTo('q');
    await answer(attachment('A2'));
    expect(asked).toEqual(['p/a.md', 'q/a.md']);
    expect(dropped).toEqual(['A1']);
    expect(attachmentQueue.ready.map(({ id }) => id)).toEqual(['A2']);
  });
});

describe('who cannot see', () => {
  const voices = ['Alpha', 'Beta'].map((name) => ({ name, model: name }) as Voice);
  const seeing = (...who: string[]) => {
    return (key: string) => ({ abilities: { vision: who.includes(key) } }) as ModelView;
  };
  const sea = { name: 'sea.png', mime_type: 'image/png' };

  it('is named, with the picture', () => {
    expect(blindness([sea], voices, seeing('Beta'))).toBe(
      'Alpha cannot see pictures. It is asked without sea.png.',
    );
    expect(blindness([sea, sea, sea], voices, seeing())).toBe(
      'Alpha and Beta cannot see pictures. They are asked without the 3 pictures.',
    );
  });

  it('is nobody when all see, when there is no picture, or when the model is unknown', () => {
    expect(blindness([sea], voices, seeing('Alpha', 'Beta'))).toBe('');
    expect(blindness([{ name: 'a.md', mime_type: 'text/plain' }], voices, seeing())).toBe('');
    expect(blindness([sea], voices, () => undefined)).toBe('');
  });
});

describe('what is pasted', () => {
  const clipboard = (types: string[], ...files: File[]) => ({ types, files }) as unknown as DataTransfer;
  const at = new Date(2026, 0, 1, 9, 5, 7);

  it('is a file when there are no words beside it; a copied picture gets a name', () => {
    const image = new File([''], 'image.png');
    const names = pastedFrom(clipboard(['Files'], image, image, new File([''], 'plan.md')), at);
    expect(names.map(({ path }) => path)).toEqual(['pasted-090507.png', 'pasted-090507-2.png', 'plan.md']);
    expect(pastedFrom(clipboard(['text/plain', 'Files'], image), at)).toEqual([]);
    expect(pastedFrom(null, at)).toEqual([]);
  });
});
