import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ConversationPage, Draft, Me, Message } from '../api/types';
import { AppStore } from './store.svelte';
import type { Item } from './items';

/** The server's end of the line. */
class Line {
  readyState = 1;
  said: { type: string; place?: string; after?: number }[] = [];
  onopen?: () => void;
  onmessage?: (event: { data: string }) => void;
  onclose?: (event: { code: number }) => void;

  send(text: string): void {
    this.said.push(JSON.parse(text) as never);
  }
  close(): void {
    this.readyState = 3;
  }
}

const ME = {
  user: { id: 'U', name: 'Ana' },
  session: { id: 'S', user_id: 'U' },
  projects: [{ id: 'P', name: 'Home' }],
  personas: [{ id: 'sage', scope: 'all', project_id: null, created_at: 1 }],
  tables: [],
  defaults: { table_id: null },
  cursor: 4,
} as unknown as Me;

const question = {
  id: 'M1',
  conversation_id: 'C',
  round_number: 1,
  role: 'user',
  content: 'Why?',
} as Message;
const reply = {
  id: 'M2',
  conversation_id: 'C',
  round_number: 1,
  role: 'advisor',
  content: 'Because.',
} as Message;
const draft = {
  id: 'M2',
  conversation_id: 'C',
  round_number: 1,
  voice: { seat: 1 },
  content: '',
  thinking: '',
  number: 0,
} as unknown as Draft;

const LOCAL = { id: 'local', scope: 'project', project_id: 'P', created_at: 0 };

function snapshot(cursor: number, messages = [question]): ConversationPage {
  return {
    conversation: { id: 'C', project_id: 'P' },
    rounds: [{ number: 1, messages }],
    next_before: null,
    turns: [],
    drafts: [],
    votes: [],
    cursor,
  } as unknown as ConversationPage;
}

describe('the store', () => {
  let line: Line;
  let store: AppStore;
  let answers: Record<string, unknown>;
  let asked: string[];
  let broken: boolean;

  beforeEach(async () => {
    vi.useFakeTimers();
    localStorage.clear();
    asked = [];
    broken = false;
    answers = {
      '/api/me': ME,
      '/api/models': { items: [{ key: 'a:b' }] },
      '/api/conversations?project_id=P&limit=50': { items: [], next: null, cursor: 9 },
      '/api/personas?project_id=P': { items: [LOCAL], cursor: 9 },
      '/api/tables?project_id=P': { items: [], cursor: 9 },
      '/api/projects/P/people': { items: [{ id: 'Z', name: 'Zoe' }], cursor: 9 },
      '/api/conversations/C': snapshot(20),
    };
    vi.stubGlobal('fetch', (path: string) => {
      asked.push(path);
      const status = broken ? 503 : path in answers ? 200 : 404;
      return Promise.resolve(Response.json(answers[path] ?? {}, { status }));
    });
    line = new Line();
    store = new AppStore({
      open: () => line as unknown as WebSocket,
      now: () => Date.now(),
      random: () => 0.5,
      isOnline: () => true,
      after: (ms, run) => {
        const timer = setTimeout(run, ms);
        return () => clearTimeout(timer);
      },
    });
    await store.start();
    line.onopen?.(); // while the first requests are still under way
    await settled();
  });

  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  /** Long enough for requests to come back and for a frame to be drawn. */
  const settled = () => vi.advanceTimersByTimeAsync(400);
  const hear = async (...items: Item[]) => {
    line.onmessage?.({ data: JSON.stringify(items) });
    await settled();
  };
  const followed = (place: string) =>
    line.said.filter((each) => each.type === 'follow' && each.place === place);

  it('knows the people of a project by name, and of those it never heard that they have left', async () => {
    expect(store.nameOf('Z')).toBe('Zoe');
    expect(store.nameOf('U')).toBe(ME.user.name);
    expect(store.nameOf('Y')).toBe('Former member');
    const yan = { id: 'Y', name: 'Yan' };
    await hear({
      type: 'event',
      place: 'project:P',
      number: 10,
      noun: 'person',
      id: 'Y',
      kind: 'changed',
      value: yan,
    });
    expect(store.nameOf('Y')).toBe('Yan');
  });

  it('knows who can be invited: everyone’s, the project’s, one’s own, as they come and go', async () => {
    const names = () => store.personasOf('P').map((persona) => persona.id);
    expect(names()).toEqual(['sage', 'local']);
    expect(store.personasOf('Q').map((persona) => persona.id)).toEqual(['sage']);
    const mine = { id: 'mine', scope: 'user', project_id: null, created_at: 2 };
    await hear(
      { type: 'event', place: 'project:P', number: 10, noun: 'persona', id: 'local', kind: 'removed' },
      {
        type: 'event',
        place: 'user:U',
        number: 5,
        noun: 'persona',
        id: 'mine',
        kind: 'changed',
        value: mine,
      },
      {
        type: 'event',
        place: 'user:U',
        number: 6,
        noun: 'defaults',
        id: 'U',
        kind: 'changed',
        value: { mode: 'quick' },
      },
    );
    expect(names()).toEqual(['sage', 'mine']);
    expect(store.defaults?.mode).toBe('quick');
  });

  it('knows who is in and follows them, their project and its conversations', () => {
    expect(store.access).toBe('in');
    expect(store.me?.name).toBe('Ana');
    expect(store.project?.id).toBe('P');
    expect(followed('user:U').at(-1)?.after).toBe(4);
    expect(followed('project:P').at(-1)?.after).toBe(9);
    expect(asked.filter((path) => path === '/api/models')).toHaveLength(1);
  });

  it('reads a conversation that is opened and follows it from there', async () => {
    await store.open('C');
    expect(store.rounds('C').map((round) => round.messages)).toEqual([[question]]);
    expect(followed('conversation:C')).toEqual([{ type: 'follow', place: 'conversation:C', after: 20 }]);
  });

  it('shows words as they come, and the message in the place of its draft', async () => {
    await store.open('C');
    await hear(
      { type: 'draft', value: draft },
      { type: 'delta', id: 'M2', after: 0, number: 2, text: 'Beca' },
    );
    expect(store.draftsOf('C').map((draft) => draft.content)).toEqual(['Beca']);
    await hear({
      type: 'event',
      place: 'conversation:C',
      number: 21,
      kind: 'changed',
      noun: 'message',
      id: 'M2',
      value: reply,
    });
    expect(store.draftsOf('C')).toEqual([]);
    expect(store.rounds('C')[0]?.messages).toEqual([question, reply]);
  });

  it('follows again when words are missing', async () => {
    await store.open('C');
    await hear(
      { type: 'draft', value: draft },
      { type: 'delta', id: 'M2', after: 5, number: 6, text: 'use' },
    );
    expect(followed('conversation:C')).toHaveLength(2);
    expect(store.drafts['M2']?.content).toBe('');
  });

  it('reads a place afresh when the server cannot go back so far', async () => {
    await store.open('C');
    answers['/api/conversations/C'] = snapshot(40, [question, reply]);
    await hear({ type: 'reset', place: 'conversation:C' });
    expect(store.rounds('C')[0]?.messages).toHaveLength(2);
    expect(followed('conversation:C').at(-1)?.after).toBe(40);
  });

  it('tries again to read a place afresh while the line stays open', async () => {
    await store.open('C');
    for (const place of ['conversation:C', 'project:P', 'user:U']) {
      const before = followed(place).length;
      broken = true;
      await hear({ type: 'reset', place } as Item);
      expect(followed(place)).toHaveLength(before);
      broken = false;
      await vi.advanceTimersByTimeAsync(3000);
      await settled();
      expect(followed(place), place).toHaveLength(before + 1);
    }
  });

  it('leaves a conversation when the last who looked at it goes, and keeps its words at hand', async () => {
    await store.open('C');
    await store.open('C');
    store.close('C');
    expect(store.isOpen('C')).toBe(true);
    store.close('C');
    expect(store.isOpen('C')).toBe(false);
    expect(line.said.at(-1)).toEqual({ type: 'leave', place: 'conversation:C' });
    expect(store.rounds('C')).toHaveLength(1);
  });

  it('says why a conversation went', async () => {
    await store.open('C');
    await hear({ type: 'gone', place: 'conversation:C', reason: 'deleted' });
    expect(store.goneReason('C')).toBe('deleted');
    expect(store.conversation('C')).toBeUndefined();
  });

  it('reads again what was lost on the way', async () => {
    const real = fetch;
    let isDown = true;
    vi.stubGlobal('fetch', (path: string) => (isDown ? Promise.reject(new TypeError()) : real(path)));
    await store.chooseProject('Q');
    expect(store.isListed('Q')).toBe(false);
    isDown = false;
    answers['/api/conversations?project_id=Q&limit=50'] = { items: [], next: null, cursor: 2 };
    answers['/api/personas?project_id=Q'] = { items: [], cursor: 1 };
    answers['/api/tables?project_id=Q'] = { items: [], cursor: 2 };
    answers['/api/projects/Q/people'] = { items: [], cursor: 2 };
    line.onopen?.();
    await settled();
    expect(store.isListed('Q')).toBe(true);
    // From where the oldest of the four answers stood: nothing falls between them.
    expect(line.said.at(-1)).toEqual({ type: 'follow', place: 'project:Q', after: 1 });
  });

  it('forgets everything when the session ends', async () => {
    await store.open('C');
    answers['/api/setup'] = { needed: false, token_needed: false, instance_name: 'Home' };
    await hear({ type: 'signed_out' });
    expect(store.access).toBe('out');
    expect(store.me).toBeNull();
    expect(store.messages).toEqual({});
    expect(asked.at(-1)).toBe('/api/setup');
  });

  it('reads all files of a project page by page, and takes over what the stream tells from there', async () => {
    const file = (id: string, path: string) => ({ id, project_id: 'P', path });
    answers['/api/projects/P/files?limit=100'] = { items: [file('F2', 'b.md')], next: 'x', cursor: 9 };
    answers['/api/projects/P/files?limit=100&cursor=x'] = {
      items: [file('F1', 'a.md')],
      next: null,
      cursor: 9,
    };
    expect(store.hasFiles('P')).toBe(false);
    await store.loadFiles('P');
    expect(store.hasFiles('P')).toBe(true);
    expect(store.filesOf('P').map(({ path }) => path)).toEqual(['a.md', 'b.md']);
    const place = 'project:P';
    const value = file('F3', 'aa.md') as never;
    await hear({ type: 'event', place, number: 10, kind: 'changed', noun: 'file', id: 'F3', value }, {
      type: 'event',
      place,
      number: 11,
      kind: 'removed',
      noun: 'file',
      id: 'F2',
      value: null,
    } as never);
    expect(store.filesOf('P').map(({ path }) => path)).toEqual(['a.md', 'aa.md']);
  });

  it('shows the first files of a long list while the rest is still read', async () => {
    const file = (id: string, path: string) => ({ id, project_id: 'P', path });
    answers['/api/projects/P/files?limit=100'] = { items: [file('F1', 'a.md')], next: 'x', cursor: 9 };
    answers['/api/projects/P/files?limit=100&cursor=x'] = { items: [], next: null, cursor: 9 };
    const real = fetch;
    let goOn = () => {};
    const gate = new Promise<null>((resolve) => (goOn = () => resolve(null)));
    vi.stubGlobal('fetch', async (path: string) => {
      if (path.endsWith('cursor=x')) await gate;
      return real(path);
    });
    const read = store.loadFiles('P');
    await vi.waitFor(() => expect(store.filesOf('P').map(({ path }) => path)).toEqual(['a.md']), {
      timeout: 60_000,
    });
    expect(store.hasFiles('P')).toBe(false);
    goOn();
    await read;
    expect(store.hasFiles('P')).toBe(true);
  });

  it('does not say that it has the files when they could not be read', async () => {
    await expect(store.loadFiles('P')).rejects.toMatchObject({ status: 404 });
    expect(store.hasFiles('P')).toBe(false);
  });

  it('reads the files again with the project when the server cannot go back so far', async () => {
    answers['/api/projects/P/files?limit=100'] = { items: [], next: null, cursor: 9 };
    await store.loadFiles('P');
    const items = [{ id: 'F1', project_id: 'P', path: 'a.md' }];
    answers['/api/projects/P/files?limit=100'] = { items, next: null, cursor: 30 };
    answers['/api/conversations?project_id=P&limit=50'] = { items: [], next: null, cursor: 30 };
    await hear({ type: 'reset', place: 'project:P' });
    expect(store.filesOf('P')).toEqual(items);
  });
});
