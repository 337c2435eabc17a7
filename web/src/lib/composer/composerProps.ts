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
  /** What each at the table will take, by place. */
  parts: (Expected | undefined)[];
  total: Total | undefined;
  /** Who will not get all of it. */
  warning: string;
  onattach: (brought: DroppedFile[], into?: Into) => void;
  /** One of the project's files is to come along. */
  onfile: (file: ProjectFile) => void;
  onsend: () => void;
}

export interface ComposerProps extends MessageProps {
  /** What it costs, answer by answer. */
  costs: Cost[];
  /** It leaves when its files have come. */
  isWaiting: boolean;
  isOffline: boolean;
  onstop: (() => void) | null;
  hasFocus: boolean;
}
