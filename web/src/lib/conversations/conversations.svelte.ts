/**
 * What can be done with a conversation from outside it. Each change shows at once; the stream confirms it, and
 * a refusal takes it back and says so.
 */
import ArchiveIcon from '@lucide/svelte/icons/archive';
import { ApiError, request } from '../api/client';
import type { Conversation, DeletionPreview } from '../api/types';
import { store } from '$lib/live/store.svelte';
import { confirm } from '../ui/confirm.svelte';
import { toast } from '../ui/toasts.svelte';
import { titleOf } from './groups';
import { deletionText } from './deletionText';

type Change = Partial<Pick<Conversation, 'title' | 'pinned' | 'archived'>>;

/** Longer than the stream takes to say the same. */
const CONFIRMED_MS = 2000;

let hoped = $state.raw<Record<string, Change>>({});

/** The conversations of a project as the person expects to see them. */
export function conversationsOf(projectId: string): Conversation[] {
  return Object.values(store.conversations)
    .filter((conversation) => conversation.project_id === projectId)
    .map((conversation) =>
      hoped[conversation.id] ? { ...conversation, ...hoped[conversation.id] } : conversation,
    );
}

export function rename(conversation: Conversation, title: string): Promise<boolean> {
  const clean = title.split(/\s+/).filter(Boolean).join(' ');
  if (!clean || clean === conversation.title) return Promise.resolve(false);
  return change(conversation, { title: clean }, 'title', 'The new name was not saved.');
}

export function setPinned(conversation: Conversation, pinned: boolean): Promise<boolean> {
  return change(
    conversation,
    { pinned },
    'pinned',
    pinned ? 'It could not be pinned.' : 'It could not be unpinned.',
  );
}

export async function archive(conversation: Conversation): Promise<void> {
  const isSaved = await change(conversation, { archived: true }, 'archived', 'It could not be archived.');
  if (isSaved)
    toast({
      text: `“${titleOf(conversation)}” archived`,
      icon: ArchiveIcon,
      action: { label: 'Undo', run: () => void restore(conversation) },
    });
}

export function restore(conversation: Conversation): Promise<boolean> {
  return change(conversation, { archived: false }, 'archived', 'It could not be restored.');
}

/** Says first what would go with it. Resolves to whether it is gone. */
export async function remove(conversation: Conversation): Promise<boolean> {
  try {
    const removal = await request<DeletionPreview>('GET', `/api/conversations/${conversation.id}/removal`);
    const isSure = await confirm({
      title: `Delete “${titleOf(conversation)}”?`,
      body: deletionText(conversation, removal),
      action: conversation.parent_id ? 'Delete branch' : 'Delete conversation',
    });
    if (!isSure) return false;
    await request('DELETE', `/api/conversations/${conversation.id}`);
    toast({ text: `“${titleOf(conversation)}” deleted` });
    return true;
  } catch (reason) {
    return refused('It could not be deleted.', reason);
  }
}

async function change(
  conversation: Conversation,
  wish: Change,
  what: string,
  sorry: string,
): Promise<boolean> {
  const { id } = conversation;
  hoped = { ...hoped, [id]: { ...hoped[id], ...wish } };
  try {
    await request('PUT', `/api/conversations/${id}/${what}`, wish);
    setTimeout(() => forget(id), CONFIRMED_MS);
    return true;
  } catch (reason) {
    forget(id);
    return refused(sorry, reason);
  }
}

function forget(id: string): void {
  const { [id]: _, ...rest } = hoped;
  hoped = rest;
}

function refused(sorry: string, reason: unknown): false {
  toast({ text: reason instanceof ApiError ? `${sorry} ${reason.message}` : sorry, tone: 'error' });
  return false;
}
