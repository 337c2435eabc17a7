/** Filters a branch tree to the person's own branches, the current one, and their ancestors. */
import type { Tree } from '$lib/api/types';
import { lineageOf } from '$lib/conversations/branchFamily';

export function ownBranchesOf(tree: Tree, userId: string, here: string): Tree {
  const wanted = tree.nodes.map((node) => node.conversation).filter((each) => each.owner_id === userId);
  const ids = new Set(
    [here, ...wanted.map((each) => each.id)].flatMap((id) =>
      lineageOf(tree, id).map(({ node }) => node.conversation.id),
    ),
  );
  return { ...tree, nodes: tree.nodes.filter((node) => ids.has(node.conversation.id)) };
}
