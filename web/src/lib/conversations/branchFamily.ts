/** The tree of branches: parents, ancestors, order, and the name of a branch. */
import type { Conversation, Tree, TreeNode } from '$lib/api/types';

export type Named = Pick<Conversation, 'title' | 'parent_id' | 'branch_round'>;

/** The root is the main line of its tree; its title stands over the page already. */
export function branchName(conversation: Named): string {
  if (conversation.parent_id === null) return 'Main conversation';
  if (conversation.title) return conversation.title;
  return conversation.branch_round ? `Branch at round ${conversation.branch_round}` : 'Edited question';
}

/** Whether a conversation hangs on another, at any distance. */
export function comesFrom(known: Record<string, Conversation>, id: string, other: string): boolean {
  for (let parent = known[id]?.parent_id; parent; parent = known[parent]?.parent_id)
    if (parent === other) return true;
  return false;
}

/** All conversations known that belong to the same tree, in the order in which they were made. */
export function familyOf(known: Record<string, Conversation>, id: string): Conversation[] {
  const root = rootOf(known, id);
  return Object.values(known)
    .filter((each) => rootOf(known, each.id) === root)
    .sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
}

/** As far up as is known. */
function rootOf(known: Record<string, Conversation>, id: string): string {
  let at = id;
  for (let parent = known[at]?.parent_id; parent; parent = known[at]?.parent_id) at = parent;
  return at;
}

/** A stretch of the way from the root to a conversation: up to which of its rounds it is read. */
export interface LineagePart {
  node: TreeNode;
  last: number;
}

/** From the root to a conversation, each as far as it is read on the way. */
export function lineageOf(tree: Tree, id: string): LineagePart[] {
  const nodes = new Map(tree.nodes.map((node) => [node.conversation.id, node]));
  const line: LineagePart[] = [];
  let last = Infinity;
  for (let node = nodes.get(id); node; node = nodes.get(node.conversation.parent_id ?? '')) {
    line.unshift({ node, last });
    last = Math.min(last, node.conversation.branch_round ?? 0);
  }
  return line;
}

/** "4 branches · 11 rounds" */
export function sizeOf(nodes: TreeNode[]): { branches: number; rounds: number; micros: number | null } {
  const rounds = nodes.flatMap((node) => node.rounds);
  const known = rounds.map((round) => round.cost_micros).filter((each) => each !== null);
  return {
    branches: nodes.length,
    rounds: rounds.length,
    micros: known.length ? known.reduce((sum, each) => sum + each, 0) : null,
  };
}
