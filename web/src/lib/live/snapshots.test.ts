import { describe, expect, it } from 'vitest';
import type { Conversation, ConversationPage, Message, ProjectFile, Turn } from '../api/types';
import { apply, EMPTY, type State } from './apply';
import { roundsOf } from './rounds';
import {
  addConversations,
  addRounds,
  dropMessages,
  isShownIn,
  leaveConversation,
  putConversation,
  putConversations,
  putAll,
} from './snapshots';

const conversation = (id: string, more: Partial<Conversation> = {}) =>
  ({ id, project_id: 'P', archived: false, title: id, ...more }) as Conversation;
const message = (id: string, round_number: number, more: Partial<Message> = {}) =>
  ({ id, conversation_id: 'C', round_number, role: 'user', content: id, ...more }) as Message;
const turn = (id: string, round_number: number) => ({ id, conversation_id: 'C', round_number }) as Turn;
const page = (numbers: number[], cursor = 7) =>
  ({
    conversation: conversation('C'),
    rounds: numbers.map((number) => ({ number, messages: [message(`M${number}`, number)] })),
    next_before: numbers[0]! > 1 ? numbers[0]! : null,
    turns: numbers.map((number) => turn(`T${number}`, number)),
    votes: [],
    drafts: [],
    cursor,
  }) as ConversationPage;

const numbersOf = (state: State) =>
  roundsOf(Object.values(state.tables.message)).map((round) => round.number);

describe('a conversation read again', () => {
  it('keeps the older rounds someone has scrolled to when they join on', () => {
    let state = putConversation(EMPTY, page([6, 7]));
    state = addRounds(state, 'C', page([4, 5]));
    state = putConversation(state, page([6, 7, 8]));
    expect(numbersOf(state)).toEqual([4, 5, 6, 7, 8]);
    expect(Object.keys(state.tables.turn).sort()).toEqual(['T4', 'T5', 'T6', 'T7', 'T8']);
  });

  it('drops them when rounds are missing in between', () => {
    let state = putConversation(EMPTY, page([1, 2]));
    state = putConversation(state, page([6, 7]));
    expect(numbersOf(state)).toEqual([6, 7]);
    expect(Object.keys(state.tables.turn).sort()).toEqual(['T6', 'T7']);
  });

  it('leaves other conversations alone', () => {
    const other = message('X', 1, { conversation_id: 'D' });
    const before = addRounds(EMPTY, 'D', {
      rounds: [{ number: 1, messages: [other] }],
      turns: [],
      votes: [],
    });
    expect(putConversation(before, page([1])).tables.message['X']).toBe(other);
  });

  it('does not undo what the stream of its project said meanwhile', () => {
    const named = conversation('C', { title: 'named' });
    const state = putConversations(EMPTY, 'P', { items: [named], next: null, cursor: 1 });
    expect(putConversation(state, page([1])).tables.conversation['C']).toBe(named);
    expect(putConversation(EMPTY, page([1])).tables.conversation['C']!.title).toBe('C');
  });

  it('is followed from its cursor, and no longer when it is left', () => {
    const state = putConversation(EMPTY, page([1], 12));
    expect(state.cursors).toEqual({ 'conversation:C': 12 });
    const left = leaveConversation(state, 'C');
    expect(left.cursors).toEqual({});
    expect(numbersOf(left)).toEqual([1]);
    expect(numbersOf(dropMessages(left, 'C'))).toEqual([]);
  });
});

describe('the list of a project', () => {
  it('read again forgets what is gone, but not what is open or archived', () => {
    let state = putConversations(EMPTY, 'P', {
      items: [conversation('A'), conversation('C')],
      next: null,
      cursor: 1,
    });
    state = addConversations(state, { items: [conversation('Z', { archived: true })] });
    state = putConversation(state, page([1]));
    state = putConversations(state, 'P', { items: [conversation('B')], next: null, cursor: 5 });
    expect(Object.keys(state.tables.conversation).sort()).toEqual(['B', 'C', 'Z']);
    expect(state.cursors['project:P']).toBe(5);
  });

  it('takes a later page without undoing what the stream has said since', () => {
    const fresh = conversation('A', { title: 'fresh' });
    const state = putConversations(EMPTY, 'P', { items: [fresh], next: 'x', cursor: 1 });
    const more = addConversations(state, {
      items: [conversation('A', { title: 'stale' }), conversation('B')],
    });
    expect(more.tables.conversation['A']).toBe(fresh);
    expect(more.tables.conversation['B']).toBeDefined();
  });
});

describe('the files of a project', () => {
  const file = (id: string, version = 1, project_id = 'P') => ({ id, project_id, version }) as ProjectFile;
  const told = (number: number, ...files: ProjectFile[]): State => ({
    ...EMPTY,
    cursors: { 'project:P': number },
    tables: { ...EMPTY.tables, file: Object.fromEntries(files.map((file) => [file.id, file])) },
  });
  const versionsIn = (state: State) =>
    Object.fromEntries(Object.values(state.tables.file).map(({ id, version }) => [id, version]));

  it('are those of the list, and of other projects what was known', () => {
    const before = told(3, file('gone'), file('other', 1, 'Q'));
    const after = putAll(before, before, 'file', 'P', { items: [file('a'), file('b')], cursor: 3 });
    expect(versionsIn(after)).toEqual({ a: 1, b: 1, other: 1 });
  });

  it('keep what the stream told while the list was on its way', () => {
    const before = told(3, file('a'));
    const meanwhile = told(5, file('a', 2), file('new'));
    const after = putAll(meanwhile, before, 'file', 'P', { items: [file('a')], cursor: 3 });
    expect(versionsIn(after)).toEqual({ a: 2, new: 1 });
  });

  it('do not come back when they were deleted while the list was on its way', () => {
    const before = told(3, file('a'));
    const after = putAll(told(4), before, 'file', 'P', { items: [file('a')], cursor: 3 });
    expect(versionsIn(after)).toEqual({});
  });

  it('follow a list that is newer than what the stream has told', () => {
    const before = told(3, file('a'));
    const meanwhile = told(4, file('a', 2));
    const after = putAll(meanwhile, before, 'file', 'P', { items: [file('a', 3)], cursor: 6 });
    expect(versionsIn(after)).toEqual({ a: 3 });
  });
});

describe('rounds', () => {
  it('that did not change stay the same objects, so their views rest', () => {
    const first = message('M1', 1);
    const before = roundsOf([first, message('M2', 2)]);
    const after = roundsOf([first, message('M2', 2, { content: 'changed' })], before);
    expect(after[0]).toBe(before[0]);
    expect(after[1]).not.toBe(before[1]);
  });

  it('all unchanged are the same list', () => {
    const messages = [message('M1', 1), message('M2', 2)];
    const before = roundsOf(messages);
    expect(roundsOf([...messages].reverse(), before)).toBe(before);
  });
});

describe('a branch', () => {
  const shown = (state: State, id: string) =>
    roundsOf(Object.values(state.tables.message).filter(isShownIn(state, id))).map(({ number, messages }) => [
      number,
      messages.map((message) => message.id),
    ]);
  const branch = (...said: Message[]) =>
    ({
      ...page([1]),
      conversation: conversation('B', { parent_id: 'C' }),
      rounds: roundsOf(said),
    }) as ConversationPage;
  const own = (id: string, number: number) => message(id, number, { conversation_id: 'B' });

  it('shows what was said before it, and nothing said after it left', () => {
    let state = putConversation(EMPTY, page([1, 2, 3]));
    state = putConversation(state, branch(message('M1', 1), own('N2', 2)));
    expect(shown(state, 'B')).toEqual([
      [1, ['M1']],
      [2, ['N2']],
    ]);
    expect(shown(state, 'C').map(([number]) => number)).toEqual([1, 2, 3]);
  });

  it('inherits earlier rounds as they are read, and what is still said there', () => {
    let state = putConversation(EMPTY, branch(message('M2', 2), own('N3', 3)));
    state = addRounds(state, 'B', { rounds: roundsOf([message('M1', 1)]), turns: [], votes: [] });
    state = apply(state, {
      type: 'event',
      place: 'conversation:B',
      number: 8,
      noun: 'message',
      kind: 'changed',
      id: 'M2b',
      value: message('M2b', 2),
    });
    expect(shown(state, 'B')).toEqual([
      [1, ['M1']],
      [2, ['M2', 'M2b']],
      [3, ['N3']],
    ]);
  });

  it('keeps what it inherited when the conversation it left is put away', () => {
    let state = putConversation(EMPTY, page([1, 2]));
    state = putConversation(state, branch(message('M1', 1), own('N2', 2)));
    state = dropMessages(state, 'C');
    expect(shown(state, 'B').map(([number]) => number)).toEqual([1, 2]);
    expect(Object.keys(state.tables.message).sort()).toEqual(['M1', 'N2']);
  });

  it('read again, has lost what was deleted meanwhile', () => {
    let state = putConversation(EMPTY, branch(message('M1', 1), own('N2', 2)));
    state = putConversation(state, branch(message('M1b', 1), own('N2', 2)));
    expect(shown(state, 'B')[0]).toEqual([1, ['M1b']]);
  });
});
