/** The text of a confirmation before deleting: everything that is deleted with it, and what stays. */
import type { Conversation, MessageDeletionPreview, DeletionPreview } from '../api/types';

const SHOWN_TITLES = 3;
const FINAL = 'This cannot be undone.';

/** "1 question and 5 replies will be deleted for everyone. This cannot be undone. …" */
export function deletionText(conversation: Conversation, removal: DeletionPreview): string {
  const { rounds, replies, conversations } = removal;
  const sentence =
    rounds + replies ? `${both(rounds, replies)} will be deleted for everyone.` : 'It is empty.';
  const titles = removal.titles.filter((title) => title !== conversation.title);
  const others = conversations > 1 ? ` ${withBranches(conversations - 1, titles)}` : '';
  const rest = conversation.parent_id
    ? 'The conversation it branched from stays.'
    : 'To keep it out of sight, archive it instead.';
  return `${sentence}${others} ${FINAL} ${rest}`;
}

/** "This reply and 1 other version of it will be deleted for everyone. This cannot be undone." */
export function messageDeletionText(isQuestion: boolean, removal: MessageDeletionPreview): string {
  const { rounds, replies, branches } = removal;
  const versions = counted(replies - 1, 'other version');
  const what = isQuestion
    ? `${rounds > 1 ? counted(rounds, 'question') : 'The question'} and ${counted(replies, 'reply', 'replies')}`
    : replies > 1
      ? `This reply and ${versions} of it`
      : 'This reply';
  const heirs =
    branches === 1
      ? ' A branch that uses it continues without it.'
      : ` ${branches} branches that use it continue without it.`;
  return `${what} will be deleted for everyone. ${FINAL}${branches ? heirs : ''}`;
}

function withBranches(count: number, titles: string[]): string {
  const named = titles.slice(0, SHOWN_TITLES).map((title) => `“${title}”`);
  const names = named.length ? `: ${named.join(', ')}${count > named.length ? ' and others' : ''}` : '';
  return `${counted(count, 'branch', 'branches')} will be deleted with it${names}.`;
}

function both(rounds: number, replies: number): string {
  const [asked, sentence] = [counted(rounds, 'question'), counted(replies, 'reply', 'replies')];
  return rounds && replies ? `${asked} and ${sentence}` : rounds ? asked : sentence;
}

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
