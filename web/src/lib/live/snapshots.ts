/** Puts the answers of GET requests into the state; the stream goes on from each snapshot's cursor. Pure. */
import type {
  Conversation,
  ConversationList,
  ConversationPage,
  Me,
  Message,
  OlderRounds,
  Person,
  Session,
  Turn,
} from '../api/types';
import { keep, type Inherited, type State } from './apply';
import { conversationTopic, projectTopic, userTopic, type Tables } from './items';

export function putMe(state: State, me: Me): State {
  const { user, session, projects, personas, tables, defaults, cursor } = me;
  const ofProjects = (each: { project_id: string | null }) => each.project_id !== null;
  return {
    ...state,
    cursors: { ...state.cursors, [userTopic(user.id)]: cursor },
    tables: {
      ...state.tables,
      user: { ...state.tables.user, [user.id]: user },
      session: { ...state.tables.session, [session.id]: session },
      project: byId(projects),
      persona: { ...keep(state.tables.persona, ofProjects), ...byId(personas) },
      table: { ...keep(state.tables.table, ofProjects), ...byId(tables) },
      defaults: { [user.id]: defaults },
    },
  };
}

/** The first page of a project's conversations: what it does not hold, a later page will bring; open ones stay. */
export function putConversations(state: State, projectId: string, page: ConversationList): State {
  const isElsewhere = (each: Conversation) =>
    each.project_id !== projectId || each.archived || conversationTopic(each.id) in state.cursors;
  const others = keep(state.tables.conversation, isElsewhere);
  return {
    ...state,
    cursors: { ...state.cursors, [projectTopic(projectId)]: page.cursor },
    tables: { ...state.tables, conversation: { ...others, ...byId(page.items) } },
  };
}

/** Adds a later page of conversations, or the archived ones. Conversations from the stream are newer and stay. */
export function addConversations(state: State, page: Pick<ConversationList, 'items'>): State {
  return {
    ...state,
    tables: { ...state.tables, conversation: { ...byId(page.items), ...state.tables.conversation } },
  };
}

/** All items of a kind in a project, and the project's cursor when they were read. */
interface Listed<Noun extends 'file' | 'persona' | 'table'> {
  items: Tables[Noun][string][];
  cursor: number;
}

/** All that a project has of one kind, read while `before` was known; what is not in the answer is no more. */
export function putAll<Noun extends 'file' | 'persona' | 'table'>(
  state: State,
  before: State,
  noun: Noun,
  projectId: string,
  list: Listed<Noun>,
): State {
  const put = putSome(state, before, noun, projectId, list);
  return dropOthers(put, before, noun, projectId, list);
}

/**
 * A part of it. What the stream told since `before` was known, and the answer does not contain yet, is newer and
 * stays.
 */
export function putSome<Noun extends 'file' | 'persona' | 'table'>(
  state: State,
  before: State,
  noun: Noun,
  projectId: string,
  list: Listed<Noun>,
): State {
  const isNewer = newer(state, before, noun, projectId, list.cursor);
  const read = byId(list.items.filter((item) => item.project_id === projectId && !isNewer(item.id)));
  return { ...state, tables: { ...state.tables, [noun]: { ...state.tables[noun], ...read } } };
}

/** Removes the project's other items, except those the stream brought since. */
export function dropOthers<Noun extends 'file' | 'persona' | 'table'>(
  state: State,
  before: State,
  noun: Noun,
  projectId: string,
  list: Listed<Noun>,
): State {
  const isNewer = newer(state, before, noun, projectId, list.cursor);
  const listed = new Set(list.items.map(({ id }) => id));
  const now: OfProject = state.tables[noun];
  const kept = keep(now, (each) => each.project_id !== projectId || listed.has(each.id) || isNewer(each.id));
  return { ...state, tables: { ...state.tables, [noun]: kept } };
}

function newer(
  state: State,
  before: State,
  noun: 'file' | 'persona' | 'table',
  projectId: string,
  cursor: number,
): (id: string) => boolean {
  const isBehind = (state.cursors[projectTopic(projectId)] ?? 0) > cursor;
  const [now, then]: [OfProject, OfProject] = [state.tables[noun], before.tables[noun]];
  return (id) => isBehind && now[id] !== then[id];
}

type OfProject = Record<string, { id: string; project_id: string | null }>;

/** Adds persons; names stay even when another project is opened, since they are the same there. */
export function putPeople(state: State, items: Person[]): State {
  return { ...state, tables: { ...state.tables, person: { ...state.tables.person, ...byId(items) } } };
}

/** The project is followed from where the oldest of several answers stood. */
export function followFrom(state: State, projectId: string, cursor: number): State {
  return { ...state, cursors: { ...state.cursors, [projectTopic(projectId)]: cursor } };
}

/**
 * The last rounds of a conversation. Older ones loaded before stay if they still join on. Its name and state are
 * left to the project's stream where that is followed: the answer may have been overtaken on its way.
 */
export function putConversation(state: State, snapshot: ConversationPage): State {
  const { conversation, rounds, cursor } = snapshot;
  const messages = rounds.flatMap((round) => round.messages);
  const joined = joinsOn(state, snapshot);
  const first = rounds[0]?.number ?? 0;
  const isMine = (each: { conversation_id: string }) => each.conversation_id === conversation.id;
  const isOlder = (each: { conversation_id: string; round_number: number }) =>
    !isMine(each) || (joined && each.round_number < first);
  const isFollowed = projectTopic(conversation.project_id) in state.cursors;
  const told = isFollowed ? state.tables.conversation[conversation.id] : undefined;
  return {
    cursors: { ...state.cursors, [conversationTopic(conversation.id)]: cursor },
    tables: {
      ...state.tables,
      conversation: { ...state.tables.conversation, [conversation.id]: told ?? conversation },
      message: { ...keep(state.tables.message, isOlder), ...byId(messages) },
      turn: { ...keep(state.tables.turn, isOlder), ...byId(snapshot.turns) },
      vote: { ...keep(state.tables.vote, isOlder), ...byId(snapshot.votes) },
    },
    drafts: { ...keep(state.drafts, (each) => !isMine(each)), ...byId(snapshot.drafts) },
    inherited: {
      ...state.inherited,
      [conversation.id]: {
        ...(joined && inheritedBefore(state, conversation.id, first)),
        ...from(conversation.id, messages),
      },
    },
  };
}

/** Returns the messages a conversation inherited from rounds before the given round. */
function inheritedBefore(state: State, id: string, round: number): Inherited {
  const ids = Object.keys(state.inherited[id] ?? {});
  return marked(ids.filter((each) => (state.tables.message[each]?.round_number ?? round) < round));
}

/** Returns the messages that belong to another conversation than this. */
function from(id: string, messages: Message[]): Inherited {
  return marked(messages.filter((each) => each.conversation_id !== id).map((each) => each.id));
}

function marked(ids: string[]): Inherited {
  return Object.fromEntries(ids.map((id) => [id, true]));
}

/** Returns a test for messages a conversation shows: its own, and those it inherited. */
export function isShownIn(state: State, id: string): (message: Message) => boolean {
  const inherited = state.inherited[id];
  return (message) => message.conversation_id === id || inherited?.[message.id] === true;
}

/** Whether the rounds known already touch those of the snapshot. */
export function joinsOn(state: State, { conversation, rounds }: ConversationPage): boolean {
  const first = rounds[0]?.number ?? 0;
  const isShown = isShownIn(state, conversation.id);
  return Object.values(state.tables.message).some((each) => each.round_number === first - 1 && isShown(each));
}

export function addRounds(
  state: State,
  id: string,
  page: Pick<OlderRounds, 'rounds' | 'turns' | 'votes'>,
): State {
  const older = page.rounds.flatMap((round) => round.messages);
  const messages = byId<Message>(older);
  const { message, turn } = state.tables;
  return {
    ...state,
    tables: {
      ...state.tables,
      message: { ...messages, ...message },
      turn: { ...byId<Turn>(page.turns), ...turn },
      vote: { ...byId(page.votes), ...state.tables.vote },
    },
    inherited: { ...state.inherited, [id]: { ...state.inherited[id], ...from(id, older) } },
  };
}

export function putSessions(state: State, sessions: Session[]): State {
  return { ...state, tables: { ...state.tables, session: byId(sessions) } };
}

/** Leaves a conversation no page shows: its messages stay, its drafts are removed because they are soon out of date. */
export function leaveConversation(state: State, id: string): State {
  const place = conversationTopic(id);
  return {
    ...state,
    cursors: Object.fromEntries(Object.entries(state.cursors).filter(([each]) => each !== place)),
    drafts: keep(state.drafts, (each) => each.conversation_id !== id),
  };
}

/** Removes a conversation's messages, except those a loaded branch shows. */
export function dropMessages(state: State, conversationId: string): State {
  const inherited = Object.fromEntries(
    Object.entries(state.inherited).filter(([id]) => id !== conversationId),
  );
  const isInherited = (id: string) => Object.values(inherited).some((ids) => ids[id]);
  const { message, turn } = state.tables;
  const messages = keep(message, (each) => each.conversation_id !== conversationId || isInherited(each.id));
  const asked = new Set(Object.values(messages).map((message) => message.turn_id));
  const turns = keep(turn, (each) => each.conversation_id !== conversationId || asked.has(each.id));
  return { ...state, inherited, tables: { ...state.tables, message: messages, turn: turns } };
}

function byId<T extends { id: string }>(items: T[]): Record<string, T> {
  return Object.fromEntries(items.map((item) => [item.id, item]));
}
