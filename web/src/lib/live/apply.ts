/**
 * Applies items of the stream to the state: state × item → state. Pure; what did not change keeps its identity,
 * so a delta costs one small draft and nothing else.
 *
 *   event      the next number of a followed place: `changed` puts a value in its table, `removed` takes it out
 *   draft      a running reply as it stands            delta    words for it, if they follow on the last ones
 *   waiting    its provider asked for patience         reset    a place must be read afresh
 *   gone       a place is no longer ours to see        signed_out   nothing is
 *
 * Items may come twice or late, and frames may be lost: old ones change nothing, and `resyncFor` says what to ask
 * for when something is missing.
 */
import type { Draft, Message } from '../api/types';
import {
  conversationTopic,
  partsOf,
  type DeltaItem,
  type EventItem,
  type Item,
  type Topic,
  type Tables,
} from './items';

export interface State {
  /** The cursor reached in each followed topic. */
  cursors: Record<Topic, number>;
  tables: Tables;
  drafts: Record<string, Draft>;
  /** Inherited messages by branch: those it shows from the conversations it branched off. */
  inherited: Record<string, Inherited>;
}

/** Ids of messages. */
export type Inherited = Record<string, true>;

/** A request to the server that makes the state complete again. */
export type Resync = { follow: Topic } | { refetch: Topic };

export const EMPTY: State = {
  cursors: {},
  tables: {
    user: {},
    session: {},
    project: {},
    conversation: {},
    message: {},
    turn: {},
    file: {},
    person: {},
    persona: {},
    table: {},
    defaults: {},
    vote: {},
    replay: {},
  },
  drafts: {},
  inherited: {},
};

export function apply(state: State, item: Item): State {
  switch (item.type) {
    case 'event':
      return applyEvent(state, item);
    case 'draft':
      return applyDraft(state, item.value);
    case 'delta':
      return applyDelta(state, item);
    case 'waiting':
      return withDraft(state, item.id, (draft) => ({ ...draft, waiting: item.value }));
    case 'reset':
      return { ...state, cursors: without(state.cursors, item.place) };
    case 'gone':
      return forget(state, item.place);
    case 'signed_out':
      return EMPTY;
    case 'following':
    case 'pong':
      return state;
  }
}

/** Returns the request an item makes necessary, or null; call it before the item is applied. */
export function resyncFor(state: State, item: Item): Resync | null {
  switch (item.type) {
    case 'event':
      return item.number > (state.cursors[item.place] ?? Infinity) + 1 ? { follow: item.place } : null;
    case 'delta': {
      const draft = state.drafts[item.id];
      return draft && item.after > draft.number ? { follow: conversationTopic(draft.conversation_id) } : null;
    }
    case 'following':
      return item.number > (state.cursors[item.place] ?? Infinity) ? { refetch: item.place } : null;
    case 'reset':
      return { refetch: item.place };
    default:
      return null;
  }
}

function applyEvent(state: State, event: EventItem): State {
  if (state.cursors[event.place] !== event.number - 1) return state;
  const cursors = { ...state.cursors, [event.place]: event.number };
  const table = state.tables[event.noun] as Record<string, unknown> | undefined;
  if (!table) return { ...state, cursors }; // a noun of a newer server
  const changed = event.kind === 'changed' ? { ...table, [event.id]: event.value } : without(table, event.id);
  const tables = { ...state.tables, [event.noun]: changed };
  // The message takes over from its draft.
  const drafts = event.noun === 'message' ? without(state.drafts, event.id) : state.drafts;
  return { cursors, tables, drafts, inherited: inheritedWith(state, event) };
}

/** Adds a message to the inherited messages of a branch, when the event came for that branch. */
function inheritedWith({ inherited }: State, event: EventItem): State['inherited'] {
  const [kind, id] = partsOf(event.place);
  if (kind !== 'conversation' || event.noun !== 'message' || event.kind !== 'changed') return inherited;
  if ((event.value as Message).conversation_id === id) return inherited;
  return { ...inherited, [id]: { ...inherited[id], [event.id]: true } };
}

function applyDraft(state: State, draft: Draft): State {
  const known = state.drafts[draft.id];
  const isOver = draft.id in state.tables.message;
  if (isOver || (known && known.number > draft.number)) return state;
  return { ...state, drafts: { ...state.drafts, [draft.id]: draft } };
}

function applyDelta(state: State, delta: DeltaItem): State {
  return withDraft(state, delta.id, (draft) =>
    delta.after !== draft.number || delta.number <= draft.number
      ? draft
      : {
          ...draft,
          number: delta.number,
          content: draft.content + (delta.text ?? ''),
          thinking: draft.thinking + (delta.thinking ?? ''),
        },
  );
}

function withDraft(state: State, id: string, change: (draft: Draft) => Draft): State {
  const draft = state.drafts[id];
  const changed = draft && change(draft);
  return !changed || changed === draft ? state : { ...state, drafts: { ...state.drafts, [id]: changed } };
}

/** Takes a place and all that is known only through it out of the state. */
function forget(state: State, place: Topic): State {
  const cursors = without(state.cursors, place);
  const [kind, id] = partsOf(place);
  if (kind === 'conversation') return forgetConversations({ ...state, cursors }, (each) => each === id);
  if (kind !== 'project') return { ...state, cursors };
  const inside = state.tables.conversation;
  const left = {
    ...state.tables,
    project: without(state.tables.project, id),
    file: keep(state.tables.file, (each) => each.project_id !== id),
    persona: keep(state.tables.persona, (each) => each.project_id !== id),
    table: keep(state.tables.table, (each) => each.project_id !== id),
  };
  return forgetConversations({ ...state, cursors, tables: left }, (each) => inside[each]?.project_id === id);
}

function forgetConversations(state: State, isGone: (id: string) => boolean): State {
  const { conversation, message, turn, vote, replay } = state.tables;
  return {
    ...state,
    tables: {
      ...state.tables,
      vote: keep(vote, (each) => !isGone(each.conversation_id)),
      replay: keep(replay, (each) => !isGone(each.id)),
      conversation: keep(conversation, (each) => !isGone(each.id)),
      message: keep(message, (each) => !isGone(each.conversation_id)),
      turn: keep(turn, (each) => !isGone(each.conversation_id)),
    },
    drafts: keep(state.drafts, (each) => !isGone(each.conversation_id)),
    inherited: Object.fromEntries(Object.entries(state.inherited).filter(([each]) => !isGone(each))),
  };
}

export function keep<T>(table: Record<string, T>, isKept: (value: T) => boolean): Record<string, T> {
  return Object.fromEntries(Object.entries(table).filter(([, value]) => isKept(value)));
}

function without<T>(table: Record<string, T>, id: string): Record<string, T> {
  if (!(id in table)) return table;
  const { [id]: _, ...rest } = table;
  return rest;
}
