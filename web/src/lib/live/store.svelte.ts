/**
 * The store: the one object components read from. It signs in and out, and hands the rest to its parts:
 *
 *   LiveState           everything known, as one value
 *   Sync                applies the stream to it, reads topics again
 *   ProjectData         conversations, files and people of a project
 *   OpenConversations   the conversations on the page and their rounds
 *
 * access:  starting ─▶ in ─▶ out          unreachable: the server did not answer the first question
 *                 └──▶ out ─▶ in          set_up: there is no account yet
 */
import { ApiError, onSignedOut, request } from '../api/client';
import type {
  Conversation,
  Defaults,
  Draft,
  ModelList,
  Me,
  ModelView,
  Persona,
  Project,
  ProjectFile,
  Round,
  SavedTable,
  Session,
  SessionList,
  SetupState,
  Turn,
  User,
} from '../api/types';
import { isPassing } from './api';
import { EMPTY } from './apply';
import { browserWorld, type World } from './connection';
import { conversationTopic, partsOf, projectTopic, userTopic, type Topic } from './items';
import { OpenConversations } from './openConversations';
import { ProjectData } from './projectData.svelte';
import * as selectors from './selectors';
import * as snapshots from './snapshots';
import { LiveState } from './state.svelte';
import { Sync } from './sync.svelte';
import { unfinishedUploads } from './unfinishedUploads.svelte';

export type Access = 'starting' | 'set_up' | 'out' | 'in' | 'unreachable';

const CHOSEN_PROJECT = 'tertulia.project';
const RETRY_MS = 3000;

export class AppStore {
  #live = new LiveState();
  #projectData = new ProjectData(this.#live);
  #open = new OpenConversations(this.#live);
  #sync: Sync;

  #userId = $state.raw<string | null>(null);
  #sessionId = $state.raw<string | null>(null);
  #projectId = $state.raw<string | null>(null);
  #loadingModels: Promise<void> | null = null;

  access = $state.raw<Access>('starting');
  setup = $state.raw<SetupState | null>(null);
  models = $state.raw<ModelView[]>([]);
  /** The server's default models: they answer when neither a person nor a project has chosen. */
  defaultModels = $state.raw<string[]>([]);

  users = $derived(this.#live.tables.user);
  people = $derived(this.#live.tables.person);
  sessions = $derived(this.#live.tables.session);
  projects = $derived(this.#live.tables.project);
  conversations = $derived(this.#live.tables.conversation);
  messages = $derived(this.#live.tables.message);
  turns = $derived(this.#live.tables.turn);
  files = $derived(this.#live.tables.file);
  personas = $derived(this.#live.tables.persona);
  tables = $derived(this.#live.tables.table);
  votes = $derived(this.#live.tables.vote);
  replays = $derived(this.#live.tables.replay);
  drafts = $derived(this.#live.value.drafts);

  me = $derived<User | null>((this.#userId && this.users[this.#userId]) || null);
  session = $derived<Session | null>((this.#sessionId && this.sessions[this.#sessionId]) || null);
  /** The person's defaults for new conversations, for projects without settings of their own. */
  defaults = $derived<Defaults | null>((this.#userId && this.#live.tables.defaults[this.#userId]) || null);
  project = $derived<Project | null>(
    (this.#projectId && this.projects[this.#projectId]) || Object.values(this.projects)[0] || null,
  );

  constructor(world: World = browserWorld(liveAddress())) {
    this.#sync = new Sync(this.#live, world, {
      read: (topic) => this.#read(topic),
      opened: () => this.#fillGaps(),
      failed: (reason) => this.#tryLater(reason),
      signedOut: () => this.#signedOut(),
    });
  }

  // --- signing in and out ----------------------------------------------------------------------------------

  /** Asks who is signed in. Called when the page loads, and by "Try again". */
  async start(): Promise<void> {
    onSignedOut(() => this.#signedOut());
    try {
      this.enter(await request<Me>('GET', '/api/me'));
    } catch (reason) {
      if (reason instanceof ApiError && reason.status === 401) await this.#loadSetup();
      else this.access = 'unreachable';
    }
  }

  /** Signs the person in with an answer of the server: to `/api/me`, to sign-in, or to set-up. */
  enter(me: Me): void {
    this.#live.value = snapshots.putMe(EMPTY, me);
    this.defaultModels = me.default_models ?? [];
    this.#userId = me.user.id;
    this.#sessionId = me.session.id;
    this.access = 'in';
    const chosen = localStorage.getItem(CHOSEN_PROJECT);
    this.#projectId = (me.projects.find(({ id }) => id === chosen) ?? me.projects[0])?.id ?? null;
    this.#fillGaps();
    this.#sync.start();
  }

  async signOut(): Promise<void> {
    await request('POST', '/api/logout');
    this.#signedOut();
  }

  #signedOut(): void {
    if (this.access !== 'in') return;
    this.#sync.stop();
    this.#live.value = EMPTY;
    this.#userId = null;
    this.#sessionId = null;
    this.#projectData.clear();
    this.#open.clear();
    this.models = [];
    this.access = 'out';
    void this.#loadSetup();
  }

  async #loadSetup(): Promise<void> {
    try {
      this.setup = await request<SetupState>('GET', '/api/setup');
      this.access = this.setup.needed ? 'set_up' : 'out';
    } catch {
      this.access = 'unreachable';
    }
  }

  async loadSessions(): Promise<void> {
    const { items } = await request<SessionList>('GET', '/api/sessions');
    this.#live.value = snapshots.putSessions(this.#live.value, items);
  }

  // --- models, personas, people ----------------------------------------------------------------------------

  loadModels(): Promise<void> {
    this.#loadingModels ??= request<ModelList>('GET', '/api/models')
      .then(({ items }) => void (this.models = items))
      .finally(() => (this.#loadingModels = null));
    return this.#loadingModels;
  }

  model(key: string): ModelView | undefined {
    return this.models.find((model) => model.key === key);
  }

  personasOf(projectId: string | null): Persona[] {
    return selectors.personasOf(this.personas, projectId);
  }

  tablesOf(projectId: string | null): SavedTable[] {
    return selectors.tablesOf(this.tables, projectId);
  }

  /** Returns a user's name; empty until the names are loaded, "Former member" for an unknown user. */
  nameOf(userId: string): string {
    const known = this.people[userId] ?? this.users[userId];
    return known?.name ?? (Object.keys(this.people).length ? 'Former member' : '');
  }

  // --- a project -------------------------------------------------------------------------------------------

  async chooseProject(id: string): Promise<void> {
    this.#projectId = id;
    localStorage.setItem(CHOSEN_PROJECT, id);
    const topic = projectTopic(id);
    if (!(topic in this.#live.value.cursors))
      await this.#sync.refetch(topic).catch((reason: unknown) => this.#tryLater(reason));
  }

  /** The first page of this project's conversations is here. */
  isListed(projectId: string): boolean {
    return this.#projectData.isListed(projectId);
  }

  hasMoreConversations(projectId: string): boolean {
    return this.#projectData.hasMore(projectId);
  }

  loadMoreConversations(projectId: string): Promise<void> {
    return this.#projectData.loadMore(projectId);
  }

  loadArchived(projectId: string): Promise<void> {
    return this.#projectData.loadArchived(projectId);
  }

  /** Adds conversations that came with another answer, such as a whole tree. */
  addConversations(items: Conversation[]): void {
    this.#projectData.add(items);
  }

  /** Returns a project's files by path, without unfinished uploads; complete once `loadFiles` has returned. */
  filesOf(projectId: string): ProjectFile[] {
    return selectors.filesOf(this.files, projectId).filter((file) => !unfinishedUploads.hides(file));
  }

  hasFiles(projectId: string): boolean {
    return this.#projectData.hasFiles(projectId);
  }

  /** Throws ApiError. */
  loadFiles(projectId: string): Promise<void> {
    return this.#projectData.loadFiles(projectId);
  }

  // --- a conversation --------------------------------------------------------------------------------------

  conversation(id: string): Conversation | undefined {
    return this.conversations[id];
  }

  /** Reads the last rounds and follows what comes; may be called again for the same one. Throws ApiError. */
  async open(id: string): Promise<void> {
    this.#open.add(id);
    const topic = conversationTopic(id);
    if (topic in this.#live.value.cursors) return;
    await this.#sync.refetch(topic);
    const project = this.conversations[id]?.project_id;
    if (project && project !== this.#projectId && project in this.projects) void this.chooseProject(project);
  }

  close(id: string): void {
    if (!this.#open.release(id)) return;
    this.#sync.leave(conversationTopic(id));
    this.#open.setAside(id);
  }

  /** Tells whether a conversation's last rounds are loaded and followed. */
  isOpen(id: string): boolean {
    return this.#open.isOpen(id);
  }

  /** Returns the reason a conversation can no longer be seen; null when it can. */
  goneReason(id: string): string | null {
    return this.#sync.goneReason(conversationTopic(id));
  }

  rounds(id: string): Round[] {
    return this.#open.rounds(id);
  }

  turnsOf(id: string): Turn[] {
    return selectors.turnsOf(this.turns, this.messages, this.#live.value.inherited[id], id);
  }

  draftsOf(id: string): Draft[] {
    return selectors.draftsOf(this.drafts, id);
  }

  hasRead(id: string, round: number): boolean {
    return this.#open.hasRead(id, round);
  }

  /** Throws ApiError. */
  loadRounds(id: string, first: number, last: number): Promise<void> {
    return this.#open.loadRounds(id, first, last);
  }

  // --- the connection --------------------------------------------------------------------------------------

  get connection() {
    return this.#sync.state;
  }

  retryNow(): void {
    this.#sync.retryNow();
  }

  wentOffline(): void {
    this.#sync.wentOffline();
  }

  async #read(topic: Topic): Promise<void> {
    const [kind, id] = partsOf(topic);
    if (kind === 'user')
      this.#live.value = snapshots.putMe(this.#live.value, await request<Me>('GET', '/api/me'));
    if (kind === 'project') await this.#projectData.read(id);
    if (kind === 'conversation') await this.#open.read(id);
  }

  /** Reads what should be here and is not: after signing in, and after a request was lost. */
  #fillGaps(): void {
    const wanted = this.#open.ids.map(conversationTopic);
    if (this.#projectId) wanted.push(projectTopic(this.#projectId));
    if (this.#userId) wanted.push(userTopic(this.#userId));
    const missing = wanted.filter((topic) => !(topic in this.#live.value.cursors));
    const work = missing.map((topic) => this.#sync.refetch(topic));
    if (!this.models.length) work.push(this.loadModels());
    Promise.all(work).catch((reason: unknown) => this.#tryLater(reason));
  }

  #tryLater(reason: unknown): void {
    if (isPassing(reason)) setTimeout(() => this.access === 'in' && this.#fillGaps(), RETRY_MS);
  }
}

function liveAddress(): string {
  return `${location.origin.replace(/^http/, 'ws')}/api/live`;
}

export const store = new AppStore();
