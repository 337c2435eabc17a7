/** The props shared by the docked form, the line on a phone and its sheet. */
import type { ProjectFile } from '$lib/api/types';
import type { Into } from '$lib/attachments/attachmentQueue.svelte';
import type { Cost, Expected } from '$lib/council/estimate';
import type { DroppedFile } from '$lib/files/droppedFiles';
import type { ComposerState } from './composerState.svelte';
import type { Total } from '$lib/format/numbers';

export interface MessageProps {
  composer: ComposerState;
  projectId: string | null;
  /** The expected cost of each voice, by its place at the table. */
  parts: (Expected | undefined)[];
  total: Total | undefined;
  /** A warning that names the voices that will not get all of the message; empty for none. */
  warning: string;
  onattach: (brought: DroppedFile[], into?: Into) => void;
  /** Attaches a file of the project. */
  onfile: (file: ProjectFile) => void;
  onsend: () => void;
}

export interface ComposerProps extends MessageProps {
  /** The expected cost of each answer. */
  costs: Cost[];
  /** True while the message waits for its files to upload. */
  isWaiting: boolean;
  isOffline: boolean;
  onstop: (() => void) | null;
  hasFocus: boolean;
}
