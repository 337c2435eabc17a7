/** What is said before something is deleted: all that would go with it, and what stays. */
import type { Conversation, MessageRemoval, Removal } from '../api/types';

const SHOWN_TITLES = 3;

/** "2 rounds and 5 replies will go. The conversation it left from stays." */
export function whatGoes(conversation: Conversation, removal: Removal): string {
  const { rounds, replies, conversations } = removal;
  const said = rounds + replies ? `${both(rounds, replies)} will go` : 'Nothing was said in it yet';
  const titles = removal.titles.filter((title) => title !== conversation.title);
  const others = conversations > 1 ? ` ${withBranches(conversations - 1, titles)}` : '';
  const rest = conversation.parent_id
    ? 'The conversation it left from stays.'
    : 'For everyone and for good. To keep it out of sight, archive it instead.';
  return `${said}.${others} ${rest}`;
}

/** "This reply and 1 other version of it will go." */
export function whatGoesWith(isQuestion: boolean, removal: MessageRemoval): string {
  const { rounds, replies, branches } = removal;
  const versions = counted(replies - 1, 'other version');
  const said = isQuestion
    ? `${rounds > 1 ? counted(rounds, 'question') : 'The question'} and ${counted(replies, 'reply', 'replies')} will go.`
    : `${replies > 1 ? `This reply and ${versions} of it` : 'This reply'} will go, for everyone and for good.`;
  const heirs =
    branches === 1
      ? ' A branch that reads it will go on without it.'
      : ` ${branches} branches that read it will go on without it.`;
  return branches ? said + heirs : said;
}

function withBranches(count: number, titles: string[]): string {
  const named = titles.slice(0, SHOWN_TITLES).map((title) => `“${title}”`);
  const names = named.length ? `: ${named.join(', ')}${count > named.length ? ' and others' : ''}` : '';
  return `With it ${count === 1 ? 'goes' : 'go'} ${counted(count, 'branch', 'branches')}${names}.`;
}

function both(rounds: number, replies: number): string {
  const [asked, said] = [counted(rounds, 'round'), counted(replies, 'reply', 'replies')];
  return rounds && replies ? `${asked} and ${said}` : rounds ? asked : said;
}

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
