/**
 * The one tree of state. Components read it; only snapshots and the stream write it.
 *
 * starting ─▶ in ─▶ out          unreachable: the server did not answer the first question
 *        └──▶ out ─▶ in          set_up: nobody lives here yet
 */
import { ApiError, onSignedOut, request } from '../api/client';
import type {
  Conversation,
  Defaults,
  Draft,
  ModelList,
  Me,
  Model,
  Persona,
  Project,
  ProjectFile,
  Round,
  SavedTable,
  Session,
  SessionList,
  Setup,
  Turn,
  User,
} from '../api/types';
import { apply, EMPTY, resyncFor, type State, type Resync } from './apply';
import { browserWorld, Connection, type ConnectionState, type World } from './connection';
import { Batch } from './batching';
import { conversationTopic, partsOf, projectTopic, userTopic, type Item, type Topic } from './items';
import * as api from './api';
import { Read, roundsOf } from './rounds';
import * as snapshots from './snapshots';
import { unfinishedUploads } from './unfinishedUploads.svelte';
import * as selectors from './selectors';

export type Access = 'starting' | 'set_up' | 'out' | 'in' | 'unreachable';

const CHOSEN = 'tertulia.project';
const AT_HAND = 8;
const GAP_MS = 3000;
/** As many as the server gives in one answer. */
const ROUNDS_AT_ONCE = 100;

export class AppStore {
  #state = $state.raw<State>(EMPTY);
  #userId = $state.raw<string | null>(null);
  #sessionId = $state.raw<string | null>(null);
  #projectId = $state.raw<string | null>(null);
  #next = $state.raw<Record<string, string | null>>({});
  #gone = $state.raw<Record<Topic, string>>({});
  /** Projects whose files are here. */
  #listed = $state.raw<Record<string, boolean>>({});

  access = $state.raw<Access>('starting');
  setup = $state.raw<Setup | null>(null);
  models = $state.raw<Model[]>([]);
  connection = $state.raw<ConnectionState>({ state: 'connecting', retryAt: null });

  #tables = $derived(this.#state.tables);
  #cursors = $derived(this.#state.cursors);
  users = $derived(this.#tables.user);
  people = $derived(this.#tables.person);
  sessions = $derived(this.#tables.session);
  projects = $derived(this.#tables.project);
  conversations = $derived(this.#tables.conversation);
  messages = $derived(this.#tables.message);
  turns = $derived(this.#tables.turn);
  files = $derived(this.#tables.file);
  personas = $derived(this.#tables.persona);
  tables = $derived(this.#tables.table);
  votes = $derived(this.#tables.vote);
  replays = $derived(this.#tables.replay);
  drafts = $derived(this.#state.drafts);

  me = $derived<User | null>((this.#userId && this.users[this.#userId]) || null);
  session = $derived<Session | null>((this.#sessionId && this.sessions[this.#sessionId]) || null);
  /** What one begins with where the project says nothing. */
  /** Of the instance: who answers where neither a person nor a project has chosen. */
  defaultModels = $state.raw<string[]>([]);
  defaults = $derived<Defaults | null>((this.#userId && this.#tables.defaults[this.#userId]) || null);
  project = $derived<Project | null>(
    (this.#projectId && this.projects[this.#projectId]) || Object.values(this.projects)[0] || null,
  );

  #opened = new Map<string, number>();
  #left: string[] = [];
  #readingModels: Promise<void> | null = null;
  #rounds = new Map<string, { messages: unknown; rounds: Round[] }>();
  #read = new Map<string, Read>();
  #refetching = new Set<Topic>();
  #frames = new Batch((items) => this.#receive(items));
  #connection: Connection;

  constructor(world: World = browserWorld(liveAddress())) {
    this.#connection = new Connection(
      {
        receive: (items) => this.#frames.push(items),
        changed: (state) => this.#lineChanged(state),
        // A session that ended while we were away is told apart from a server that is down by asking.
        refused: () => void request('GET', '/api/me').catch(() => undefined),
        places: () => Object.entries(this.#state.cursors),
      },
      world,
    );
  }

  // --- coming and going ------------------------------------------------------------------------------------

  /** Who are we? Called once, when the page loads, and again by "Try again". */
  async start(): Promise<void> {
    onSignedOut(() => this.#signedOut());
    try {
      this.enter(await request<Me>('GET', '/api/me'));
    } catch (reason) {
      if (reason instanceof ApiError && reason.status === 401) await this.#lookAtDoor();
      else this.access = 'unreachable';
    }
  }

  /** With what sign-in and set-up answer, too. */
  enter(me: Me): void {
    this.#state = snapshots.putMe(EMPTY, me);
    this.defaultModels = me.default_models ?? [];
    this.#userId = me.user.id;
    this.#sessionId = me.session.id;
    this.access = 'in';
    const remembered = localStorage.getItem(CHOSEN);
    this.#projectId = (me.projects.find((each) => each.id === remembered) ?? me.projects[0])?.id ?? null;
    this.#fillGaps();
    this.#connection.start();
  }

  async signOut(): Promise<void> {
    await request('POST', '/api/logout');
    this.#signedOut();
  }

  loadModels(): Promise<void> {
    this.#readingModels ??= request<ModelList>('GET', '/api/models')
      .then(({ items }) => void (this.models = items))
      .finally(() => (this.#readingModels = null));
    return this.#readingModels;
  }

  async loadSessions(): Promise<void> {
    const { items } = await request<SessionList>('GET', '/api/sessions');
    this.#state = snapshots.putSessions(this.#state, items);
  }

  retryNow(): void {
    this.#connection.retryNow();
  }

  wentOffline(): void {
    this.#connection.wentOffline();
  }

  // --- projects and their conversations --------------------------------------------------------------------

  async chooseProject(id: string): Promise<void> {
    this.#projectId = id;
    localStorage.setItem(CHOSEN, id);
    if (!(projectTopic(id) in this.#state.cursors))
      await this.#refetch(projectTopic(id)).catch((reason: unknown) => this.#tryLater(reason));
  }

  /** The first page of this project's conversations is here. */
  isListed(projectId: string): boolean {
    return projectTopic(projectId) in this.#cursors;
  }

  hasMoreConversations(projectId: string): boolean {
    return Boolean(this.#next[projectId]);
  }

  async loadMoreConversations(projectId: string): Promise<void> {
    const cursor = this.#next[projectId];
    if (!cursor) return;
    const page = await api.readConversations(projectId, { cursor });
    this.#state = snapshots.addConversations(this.#state, page);
    this.#next = { ...this.#next, [projectId]: page.next };
  }

  /** Conversations that came with something else, such as a whole tree. */
  meet(items: Conversation[]): void {
    const news = items.filter((each) => !(each.id in this.conversations));
    if (news.length) this.#state = snapshots.addConversations(this.#state, { items: news });
  }

  async loadArchived(projectId: string): Promise<void> {
    const page = await api.readConversations(projectId, { archived: 'true' });
    this.#state = snapshots.addConversations(this.#state, page);
  }

  // --- a project's files -----------------------------------------------------------------------------------

  /** By path, without those of an upload that has not ended; all of them once `loadFiles` has come back, and part after part while it is under way. */
  filesOf(projectId: string): ProjectFile[] {
    return selectors.filesOf(this.files, projectId).filter((file) => !unfinishedUploads.hides(file));
  }

  hasFiles(projectId: string): boolean {
    return this.#listed[projectId] ?? false;
  }

  /** Reads the list of all files; from then on the stream keeps it. Throws ApiError. */
  async loadFiles(projectId: string): Promise<void> {
    const start = this.#state;
    const items: ProjectFile[] = [];
    let [before, cursor]: [State, number | null] = [start, null];
    for await (const part of api.readFiles(projectId)) {
      this.#state = snapshots.putSome(this.#state, before, 'file', projectId, part);
      items.push(...part.items);
      [before, cursor] = [this.#state, cursor ?? part.cursor];
    }
    const list = { items, cursor: cursor ?? 0 };
    this.#state = snapshots.dropOthers(this.#state, start, 'file', projectId, list);
    this.#listed = { ...this.#listed, [projectId]: true };
  }

  // --- who can be invited ----------------------------------------------------------------------------------

  personasOf(projectId: string | null): Persona[] {
    return selectors.personasOf(this.personas, projectId);
  }

  tablesOf(projectId: string | null): SavedTable[] {
    return selectors.tablesOf(this.tables, projectId);
  }

  /** Who wrote something; empty until the names are here. */
  nameOf(userId: string): string {
    const known = this.people[userId] ?? this.users[userId];
    return known?.name ?? (Object.keys(this.people).length ? 'Former member' : '');
  }

  // --- one conversation ------------------------------------------------------------------------------------

  conversation(id: string): Conversation | undefined {
    return this.conversations[id];
  }

  /** Reads the last rounds and follows what comes; may be called again for the same one. Throws ApiError. */
  async open(id: string): Promise<void> {
    this.#opened.set(id, (this.#opened.get(id) ?? 0) + 1);
    if (conversationTopic(id) in this.#state.cursors) return;
    await this.#refetch(conversationTopic(id));
    const project = this.conversations[id]?.project_id;
    if (project && project !== this.#projectId && project in this.projects) void this.chooseProject(project);
  }

  close(id: string): void {
    const watching = (this.#opened.get(id) ?? 1) - 1;
    this.#opened.set(id, watching);
    if (watching > 0) return;
    this.#opened.delete(id);
    this.#connection.leave(conversationTopic(id));
    this.#state = snapshots.leaveConversation(this.#state, id);
    this.#keepAtHand(id);
  }

  /** The conversations left last are shown at once when one comes back to them. */
  #keepAtHand(id: string): void {
    this.#left = [...this.#left.filter((each) => each !== id), id];
    const [oldest] = this.#left;
    if (this.#left.length <= AT_HAND || oldest === undefined) return;
    this.#left = this.#left.slice(1);
    if (this.#opened.has(oldest)) return;
    this.#rounds.delete(oldest);
    this.#read.delete(oldest);
    this.#state = snapshots.dropMessages(this.#state, oldest);
  }

  /** Its last rounds are here and followed. */
  isOpen(id: string): boolean {
    return conversationTopic(id) in this.#cursors;
  }

  /** Why it can no longer be seen, if so. */
  goneReason(id: string): string | null {
    return this.#gone[conversationTopic(id)] ?? null;
  }

  rounds(id: string): Round[] {
    const known = this.#rounds.get(id);
    if (known?.messages === this.messages) return known.rounds;
    const mine = Object.values(this.messages).filter(snapshots.isShownIn(this.#state, id));
    const rounds = roundsOf(mine, known?.rounds);
    this.#rounds.set(id, { messages: this.messages, rounds });
    return rounds;
  }

  turnsOf(id: string): Turn[] {
    return selectors.turnsOf(this.turns, this.messages, this.#state.inherited[id], id);
  }

  draftsOf(id: string): Draft[] {
    return selectors.draftsOf(this.drafts, id);
  }

  /** Whether a round was read, though it may be gone since. Of a conversation that is not there yet all is known. */
  hasRead(id: string, round: number): boolean {
    return this.#read.get(id)?.has(round) ?? true;
  }

  /** Reads those rounds from one to another that are not here, wherever they stand. Throws ApiError. */
  async loadRounds(id: string, first: number, last: number): Promise<void> {
    const read = this.#read.get(id);
    const missing = read?.missing(Math.max(1, first), last) ?? null;
    if (!read || missing === null) return;
    const limit = Math.min(ROUNDS_AT_ONCE, missing.last - missing.first + 1);
    const page = await api.readRounds(id, missing.last + 1, limit);
    this.#state = snapshots.addRounds(this.#state, id, page);
    read.page(missing.last - limit + 1, missing.last);
    if (missing.last - limit >= missing.first) await this.loadRounds(id, missing.first, missing.last - limit);
  }

  model(key: string): Model | undefined {
    return this.models.find((each) => each.key === key);
  }

  // --- what comes in ---------------------------------------------------------------------------------------

  #lineChanged(state: ConnectionState): void {
    this.connection = state;
    if (state.state === 'open') this.#fillGaps();
  }

  /** Reads what should be here and is not, be it that we just came in or that a request was lost. */
  #fillGaps(): void {
    const wanted = [...this.#opened.keys()].map(conversationTopic);
    if (this.#projectId) wanted.push(projectTopic(this.#projectId));
    if (this.#userId) wanted.push(userTopic(this.#userId));
    const missing = wanted.filter((place) => !(place in this.#state.cursors));
    const api = missing.map((place) => this.#refetch(place));
    if (!this.models.length) api.push(this.loadModels());
    Promise.all(api).catch((reason: unknown) => this.#tryLater(reason));
  }

  #tryLater(reason: unknown): void {
    if (api.isPassing(reason)) setTimeout(() => this.access === 'in' && this.#fillGaps(), GAP_MS);
  }

  #receive(items: Item[]): void {
    let state = this.#state;
    const resyncs: Resync[] = [];
    for (const item of items) {
      const resync = resyncFor(state, item);
      if (resync) resyncs.push(resync);
      state = apply(state, item);
      if (item.type === 'signed_out') return this.#signedOut();
      if (item.type === 'gone') this.#gone = { ...this.#gone, [item.place]: item.reason };
    }
    this.#state = state;
    for (const resync of distinct(resyncs)) this.#fulfil(resync);
  }

  #fulfil(resync: Resync): void {
    if ('refetch' in resync) this.#refetch(resync.refetch).catch((reason: unknown) => this.#tryLater(reason));
    else this.#connection.follow(resync.follow, this.#state.cursors[resync.follow] ?? 0);
  }

  /** Reads a place afresh and follows it from there. */
  async #refetch(place: Topic): Promise<void> {
    if (this.#refetching.has(place)) return;
    this.#refetching.add(place);
    try {
      await this.#readPlace(place);
      const cursor = this.#state.cursors[place];
      if (cursor !== undefined) this.#connection.follow(place, cursor);
    } finally {
      this.#refetching.delete(place);
    }
  }

  async #readPlace(place: Topic): Promise<void> {
    const [kind, id] = partsOf(place);
    if (kind === 'user') this.#state = snapshots.putMe(this.#state, await request<Me>('GET', '/api/me'));
    if (kind === 'project') await this.#readProject(id);
    if (kind === 'conversation') await this.#readConversation(id);
  }

  async #readProject(id: string): Promise<void> {
    const before = this.#state;
    const { page, personas, tables, people, cursor } = await api.readProject(id);
    let state = snapshots.putConversations(this.#state, id, page);
    state = snapshots.putAll(state, before, 'persona', id, personas);
    state = snapshots.putAll(state, before, 'table', id, tables);
    state = snapshots.putPeople(state, people.items);
    this.#state = snapshots.followFrom(state, id, cursor);
    this.#next = { ...this.#next, [id]: page.next };
    if (this.hasFiles(id)) await this.loadFiles(id);
  }

  async #readConversation(id: string): Promise<void> {
    const snapshot = await api.readConversation(id);
    if (!this.#opened.has(id)) return; // closed meanwhile
    const read = this.#read.get(id) ?? new Read();
    const isJoined = snapshots.joinsOn(this.#state, snapshot);
    read.snapshot(snapshot.next_before ?? 1, isJoined, this.rounds(id).at(-1)?.number ?? 0);
    this.#read.set(id, read);
    this.#state = snapshots.putConversation(this.#state, snapshot);
  }

  async #lookAtDoor(): Promise<void> {
    try {
      this.setup = await request<Setup>('GET', '/api/setup');
      this.access = this.setup.needed ? 'set_up' : 'out';
    } catch {
      this.access = 'unreachable';
    }
  }

  #signedOut(): void {
    if (this.access !== 'in') return;
    this.#connection.stop();
    this.#state = EMPTY;
    this.#userId = null;
    this.#sessionId = null;
    this.#next = {};
    this.#gone = {};
    this.#listed = {};
    this.#rounds.clear();
    this.#read.clear();
    this.models = [];
    this.access = 'out';
    void this.#lookAtDoor();
  }
}

function distinct(resyncs: Resync[]): Resync[] {
  return [...new Map(resyncs.map((resync) => [JSON.stringify(resync), resync])).values()];
}

function liveAddress(): string {
  return `${location.origin.replace(/^http/, 'ws')}/api/live`;
}

export const store = new AppStore();
