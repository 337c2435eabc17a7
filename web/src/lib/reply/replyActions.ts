/** Actions on replies: continue, retry, stop. Shared by cards, menus and shortcuts; a failure is shown as a toast. */
import { getContext, setContext } from 'svelte';
import type { Draft, Message, Voice } from '$lib/api/types';
import { withErrorToast } from '$lib/ui/errorToast';
import type { Version } from '$lib/lanes/lanes';
import * as requests from './requests';

export interface ReplyActions {
  /** Whether this person may write here. */
  readonly canAct: boolean;
  replyTo(message: Message): void;
  /** Brings a message into view, if its round is known. */
  show(message: Message): void;
  /** The reply that is shown alone. */
  readonly aloneId: string | null;
  /** Opens a reply over the whole width, or closes it when it is open. */
  openAlone(message: Message): void;
  /** Asks the answerer to revise its answer in view of a second opinion. */
  revise(critique: Message, answerer: Voice): void;
  /** Tells whether only this browser has the turn so far. */
  isUnsent(turnId: string): boolean;
}

const KEY = Symbol('reply actions');

export function provideReplyActions(replyActions: ReplyActions): ReplyActions {
  return setContext(KEY, replyActions);
}

export function useReplyActions(): ReplyActions {
  return getContext<ReplyActions>(KEY);
}

export function goOn(messageId: string): Promise<void> {
  return withErrorToast('The reply was not continued.', requests.goOn(messageId));
}

export function retryNow(draft: Draft): Promise<void> {
  return withErrorToast('The retry was not started.', requests.retryNow(draft.turn_id, draft.id));
}

export function stopReply(version: Version): Promise<void> {
  if (version.kind === 'draft') return stopped(requests.stop(version.draft.turn_id, version.draft.id));
  return version.kind === 'queued' ? stopped(requests.stop(version.turn.id)) : Promise.resolve();
}

export function stopTurns(turnIds: string[]): Promise<void> {
  return stopped(Promise.all(turnIds.map((id) => requests.stop(id))));
}

function stopped(work: Promise<unknown>): Promise<void> {
  return withErrorToast('It could not be stopped.', work);
}
