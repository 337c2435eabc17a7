/** Conversations grouped for the sidebar: pinned first, then by day, branches below their parents. */
import type { Conversation } from '../api/types';
import { branchName, type Named } from './branchFamily';

export interface Node {
  conversation: Conversation;
  branches: Node[];
}

export interface Group {
  label: string;
  nodes: Node[];
}

const DAY_MS = 86_400_000;

export function groupConversations(conversations: Conversation[], now: number): Group[] {
  const roots = treeOf(conversations);
  const labelled = new Map<string, Node[]>(
    ['Pinned', 'Today', 'Yesterday', 'Last week', 'Older'].map((label) => [label, []]),
  );
  for (const node of roots) labelled.get(labelOf(node, now))!.push(node);
  return [...labelled].filter(([, nodes]) => nodes.length).map(([label, nodes]) => ({ label, nodes }));
}

/** Newest first; a branch whose parent is not in the list stands by itself. */
export function treeOf(conversations: Conversation[]): Node[] {
  const nodes = new Map(
    conversations.map((conversation) => [conversation.id, { conversation, branches: [] as Node[] }]),
  );
  const roots: Node[] = [];
  for (const node of nodes.values()) {
    const parent = node.conversation.parent_id && nodes.get(node.conversation.parent_id);
    (parent ? parent.branches : roots).push(node);
  }
  for (const node of nodes.values()) node.branches.sort(byAge);
  return roots.sort((a, b) => lastTouched(b) - lastTouched(a));
}

/** Returns a conversation's title, or the text shown while it has none. */
export function titleOf(conversation: Named): string {
  return conversation.title || (conversation.parent_id ? branchName(conversation) : 'New conversation');
}

export function holds(node: Node, id: string | undefined): boolean {
  return node.branches.some((branch) => branch.conversation.id === id || holds(branch, id));
}

export function countBranches(node: Node): number {
  return node.branches.reduce((count, branch) => count + 1 + countBranches(branch), 0);
}

function labelOf(node: Node, now: number): string {
  if (node.conversation.pinned) return 'Pinned';
  const days = (startOfDay(now) - startOfDay(lastTouched(node))) / DAY_MS;
  if (days < 0.5) return 'Today';
  if (days < 1.5) return 'Yesterday'; // a day may have 23 or 25 hours
  return days < 7.5 ? 'Last week' : 'Older';
}

function lastTouched(node: Node): number {
  return Math.max(node.conversation.updated_at, ...node.branches.map(lastTouched));
}

function startOfDay(at: number): number {
  return new Date(at).setHours(0, 0, 0, 0);
}

function byAge(a: Node, b: Node): number {
  return a.conversation.created_at - b.conversation.created_at;
}
