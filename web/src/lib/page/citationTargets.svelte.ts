/** The targets of citations in a conversation: lines of its project's files, and its own rounds. */
import { untrack } from 'svelte';
import { store } from '$lib/live/store.svelte';
import type { Citations, Cited, Mark } from '$lib/markdown/citations';
import { inspector } from '$lib/panels/inspector.svelte';

export class CitationTargets implements Citations {
  #ids = $derived.by((): Record<string, string | undefined> => {
    const project = this.projectId();
    const files = project ? store.filesOf(project) : [];
    return Object.fromEntries(files.map((file) => [file.path, file.id]));
  });
  #isAsked = false;

  constructor(
    private readonly projectId: () => string | undefined,
    private readonly lastRound: () => number,
    private readonly showRound: (number: number) => void,
  ) {}

  find(mark: Mark): Cited | null {
    if (mark.kind === 'round') return this.#round(mark.number);
    const project = this.projectId();
    const id = Object.hasOwn(this.#ids, mark.path) ? this.#ids[mark.path] : undefined;
    if (project === undefined || id === undefined) {
      if (project !== undefined) this.#askForFiles(project);
      return null;
    }
    const { shown } = inspector;
    return {
      open: () => inspector.showFile(project, id, mark.from, mark.to),
      isOpen:
        shown?.kind === 'file' && shown.fileId === id && shown.from === mark.from && shown.to === mark.to,
    };
  }

  #round(number: number): Cited | null {
    if (number < 1 || number > this.lastRound()) return null;
    return { open: () => this.showRound(number), isOpen: false };
  }

  /** The list is read when a text names a file for the first time; from then on the stream keeps it. */
  #askForFiles(project: string): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    untrack(() => {
      if (!store.hasFiles(project)) void store.loadFiles(project).catch(() => (this.#isAsked = false));
    });
  }
}
