/** The data of a project: its conversations, page by page, its files and its people. */
import type { Conversation, ProjectFile } from '../api/types';
import * as api from './api';
import type { State } from './apply';
import { projectTopic } from './items';
import * as snapshots from './snapshots';
import type { LiveState } from './state.svelte';

export class ProjectData {
  /** The cursor of the next page of conversations by project; null after the last page. */
  #next = $state.raw<Record<string, string | null>>({});
  /** Projects whose files are all here. */
  #hasFiles = $state.raw<Record<string, boolean>>({});

  constructor(private readonly live: LiveState) {}

  /** Reads the first page and what belongs to the project. */
  async read(id: string): Promise<void> {
    const before = this.live.value;
    const { page, personas, tables, people, cursor } = await api.readProject(id);
    let state = snapshots.putConversations(this.live.value, id, page);
    state = snapshots.putAll(state, before, 'persona', id, personas);
    state = snapshots.putAll(state, before, 'table', id, tables);
    state = snapshots.putPeople(state, people.items);
    this.live.value = snapshots.followFrom(state, id, cursor);
    this.#next = { ...this.#next, [id]: page.next };
    if (this.hasFiles(id)) await this.loadFiles(id);
  }

  /** The first page of this project's conversations is here. */
  isListed(id: string): boolean {
    return this.live.follows(projectTopic(id));
  }

  hasMore(id: string): boolean {
    return Boolean(this.#next[id]);
  }

  async loadMore(id: string): Promise<void> {
    const cursor = this.#next[id];
    if (!cursor) return;
    const page = await api.readConversations(id, { cursor });
    this.live.value = snapshots.addConversations(this.live.value, page);
    this.#next = { ...this.#next, [id]: page.next };
  }

  async loadArchived(id: string): Promise<void> {
    const page = await api.readConversations(id, { archived: 'true' });
    this.live.value = snapshots.addConversations(this.live.value, page);
  }

  add(conversations: Conversation[]): void {
    const news = conversations.filter(({ id }) => !(id in this.live.tables.conversation));
    if (news.length) this.live.value = snapshots.addConversations(this.live.value, { items: news });
  }

  hasFiles(id: string): boolean {
    return this.#hasFiles[id] ?? false;
  }

  /** Reads the list of all files; from then on the stream keeps it. Throws ApiError. */
  async loadFiles(id: string): Promise<void> {
    const start = this.live.value;
    const items: ProjectFile[] = [];
    let [before, cursor]: [State, number | null] = [start, null];
    for await (const part of api.readFiles(id)) {
      this.live.value = snapshots.putSome(this.live.value, before, 'file', id, part);
      items.push(...part.items);
      [before, cursor] = [this.live.value, cursor ?? part.cursor];
    }
    const list = { items, cursor: cursor ?? 0 };
    this.live.value = snapshots.dropOthers(this.live.value, start, 'file', id, list);
    this.#hasFiles = { ...this.#hasFiles, [id]: true };
  }

  clear(): void {
    this.#next = {};
    this.#hasFiles = {};
  }
}
