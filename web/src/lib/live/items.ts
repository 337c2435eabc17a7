/** The items of the live stream; the server's events page documents the guarantees of each. */
import type {
  Conversation,
  Defaults,
  Draft,
  Message,
  Persona,
  Person,
  Project,
  ProjectFile,
  Replay,
  SavedTable,
  Session,
  Turn,
  User,
  Vote,
  RetryNotice,
} from '../api/types';

/** "user:<id>", "project:<id>" or "conversation:<id>" */
export type Topic = string;

export interface Tables {
  user: Record<string, User>;
  session: Record<string, Session>;
  project: Record<string, Project>;
  conversation: Record<string, Conversation>;
  message: Record<string, Message>;
  turn: Record<string, Turn>;
  file: Record<string, ProjectFile>;
  /** Persons by user id: all present and former members of the projects this person can see. */
  person: Record<string, Person>;
  persona: Record<string, Persona>;
  table: Record<string, SavedTable>;
  vote: Record<string, Vote>;
  /** Replays by the id of the branch they fill. */
  replay: Record<string, Replay>;
  /** Defaults for new conversations, by user id. */
  defaults: Record<string, Defaults>;
}

export type Noun = keyof Tables;

export type EventItem = {
  type: 'event';
  place: Topic;
  number: number;
  noun: Noun;
  id: string;
} & ({ kind: 'changed'; value: unknown } | { kind: 'removed'; value?: null });

export interface DeltaItem {
  type: 'delta';
  id: string;
  after: number;
  number: number;
  text?: string;
  thinking?: string;
}

export type Item =
  | EventItem
  | DeltaItem
  | { type: 'draft'; value: Draft }
  | { type: 'waiting'; id: string; value: RetryNotice | null }
  | { type: 'following'; place: Topic; number: number }
  | { type: 'reset'; place: Topic }
  | { type: 'gone'; place: Topic; reason: string }
  | { type: 'signed_out' }
  | { type: 'pong' };

export const userTopic = (id: string): Topic => `user:${id}`;
export const projectTopic = (id: string): Topic => `project:${id}`;
export const conversationTopic = (id: string): Topic => `conversation:${id}`;

/** "conversation:01J…" → ["conversation", "01J…"] */
export function partsOf(place: Topic): [kind: string, id: string] {
  const colon = place.indexOf(':');
  return [place.slice(0, colon), place.slice(colon + 1)];
}
