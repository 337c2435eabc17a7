import { describe, expect, it } from 'vitest';
import type { Draft, Message } from '../api/types';
import { apply, EMPTY, resyncFor, type State, type Resync } from './apply';
import { conversationTopic, type EventItem, type Item } from './items';

interface Vector {
  says: string;
  start: State;
  items: Item[];
  end: State;
  wishes: Resync[];
}

const vectors = import.meta.glob<Vector>('../../../../tests/vectors/events/*.json', {
  eager: true,
  import: 'default',
});

function replay(start: State, items: Item[]): { state: State; resyncs: Resync[] } {
  const resyncs: Resync[] = [];
  const state = items.reduce((before, item) => {
    const resync = resyncFor(before, item);
    if (resync) resyncs.push(resync);
    return apply(before, item);
  }, start);
  return { state, resyncs };
}

describe('what a device sees, as the server tells it', () => {
  for (const [path, vector] of Object.entries(vectors))
    it(`${path.split('/').at(-1)}: ${vector.says}`, () => {
      const { state, resyncs } = replay(whole(vector.start), vector.items);
      expect(state).toEqual(whole(vector.end));
      expect(resyncs).toEqual(vector.wishes);
    });

  it('is told by at least one vector', () => expect(Object.keys(vectors).length).toBeGreaterThan(5));
});

describe('a delta', () => {
  it('leaves every table and every other draft as the same object', () => {
    const state = { ...EMPTY, drafts: { A: draft('A'), B: draft('B') } };
    const after = apply(state, { type: 'delta', id: 'A', after: 0, number: 1, text: 'word' });
    expect(after.tables).toBe(state.tables);
    expect(after.cursors).toBe(state.cursors);
    expect(after.drafts.B).toBe(state.drafts.B);
    expect(after.drafts.A?.content).toBe('word');
  });

  it('that is old is no change at all', () => {
    const state = { ...EMPTY, drafts: { A: { ...draft('A'), number: 5 } } };
    expect(apply(state, { type: 'delta', id: 'A', after: 2, number: 5, text: 'word' })).toBe(state);
  });

  it('is followed by a hundred thousand others', () => {
    let state: State = { ...EMPTY, drafts: { A: draft('A') } };
    for (let n = 0; n < 100_000; n++)
      state = apply(state, { type: 'delta', id: 'A', after: n, number: n + 1, text: 'some words ' });
    expect(state.drafts.A?.content.length).toBe(1_100_000);
  });
});

describe('a bad line', () => {
  // A server that writes, and a line that loses, doubles and delays; whatever happens, both end up the same.
  for (let seed = 1; seed <= 200; seed++)
    it(`ends with the same state as a good one (${seed})`, () => {
      const random = randomFrom(seed);
      const server = new Server(random);
      let state: State = { ...EMPTY, cursors: { [PLACE]: 0 } };
      let line: Item[] = [];
      const deliver = (item: Item) => {
        const resync = resyncFor(state, item);
        state = apply(state, item);
        if (resync && 'follow' in resync) line.push(...server.follow(state.cursors[PLACE] ?? 0));
      };
      for (let step = 0; step < 60; step++) {
        line.push(...server.write());
        if (random() < 0.15) line.splice(Math.floor(random() * line.length), 1);
        if (random() < 0.15) line.push(...line.slice(Math.floor(random() * line.length)));
        if (random() < 0.5) line.splice(0, Math.ceil(line.length / 2)).forEach(deliver);
        if (random() < 0.05) line = server.follow(state.cursors[PLACE] ?? 0); // the socket was opened again
      }
      line = server.follow(state.cursors[PLACE] ?? 0);
      while (line.length) deliver(line.shift()!);
      expect(state.tables.message).toEqual(server.messages);
      expect(state.drafts).toEqual(server.drafts);
      expect(state.cursors[PLACE]).toBe(server.log.length);
    });
});

const CONVERSATION = 'C';
const PLACE = conversationTopic(CONVERSATION);

class Server {
  log: EventItem[] = [];
  drafts: Record<string, Draft> = {};
  messages: Record<string, Message> = {};
  #count = 0;

  constructor(private readonly random: () => number) {}

  write(): Item[] {
    const running = Object.values(this.drafts);
    const chosen = running[Math.floor(this.random() * running.length)];
    if (!chosen || (running.length < 3 && this.random() < 0.3)) return this.#begin();
    return this.random() < 0.2 ? this.#end(chosen) : this.#say(chosen);
  }

  follow(after: number): Item[] {
    return [
      ...this.log.slice(after),
      ...Object.values(this.drafts).map((value): Item => ({ type: 'draft', value })),
      { type: 'following', place: PLACE, number: this.log.length },
    ];
  }

  #begin(): Item[] {
    const value = draft(`R${++this.#count}`);
    this.drafts = { ...this.drafts, [value.id]: value };
    return [{ type: 'draft', value }];
  }

  #say(before: Draft): Item[] {
    const number = before.number + 1 + Math.floor(this.random() * 3);
    const text = `${number} `;
    this.drafts = { ...this.drafts, [before.id]: { ...before, number, content: before.content + text } };
    return [{ type: 'delta', id: before.id, after: before.number, number, text }];
  }

  #end(last: Draft): Item[] {
    const { [last.id]: _, ...rest } = this.drafts;
    this.drafts = rest;
    const value = { id: last.id, conversation_id: CONVERSATION, content: last.content } as Message;
    this.messages = { ...this.messages, [value.id]: value };
    const number = this.log.length + 1;
    this.log.push({
      type: 'event',
      place: PLACE,
      number,
      kind: 'changed',
      noun: 'message',
      id: value.id,
      value,
    });
    return [this.log.at(-1)!];
  }
}

function draft(id: string): Draft {
  return {
    id,
    turn_id: 'T',
    conversation_id: CONVERSATION,
    round_number: 1,
    voice: {
      id: 'v',
      seat: 1,
      name: 'V',
      model: 'm',
      persona_id: null,
      persona_version: null,
      letter: '',
      effort: null,
    },
    role: 'advisor',
    content: '',
    thinking: '',
    number: 0,
    started_at: 0,
    replaces_id: null,
    waiting: null,
    step: 'answer',
    read_replies: [],
  };
}

/** The same numbers for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A vector names only the tables it is about. */
function whole(state: State): State {
  return { ...state, inherited: {}, tables: { ...EMPTY.tables, ...state.tables } };
}
