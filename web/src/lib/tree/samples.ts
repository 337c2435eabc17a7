/** Trees for tests, written as what each branch says. */
import type { Conversation, Tree, TreeRound } from '$lib/api/types';

interface Grown {
  parent?: string;
  at?: number;
  rounds: number[];
}

export function grown(branches: Record<string, Grown>): Tree {
  let clock = 0;
  const nodes = Object.entries(branches).map(([id, { parent = null, at = null, rounds }]) => ({
    conversation: {
      id,
      title: id,
      parent_id: parent,
      branch_round: at,
      created_at: ++clock,
    } as Conversation,
    rounds: rounds.map(
      (number) => ({ number, question: `${id} ${number}`, created_at: ++clock }) as TreeRound,
    ),
  }));
  return { root_id: nodes[0]!.conversation.id, nodes, siblings: [], versions: [] };
}

/** The tree of the design: four branches, eleven rounds. */
export const SESSIONS = grown({
  main: { rounds: [1, 2, 3, 4] },
  small: { parent: 'main', at: 2, rounds: [3, 4] },
  keep: { parent: 'main', at: 3, rounds: [4, 5, 6] },
  device: { parent: 'keep', at: 5, rounds: [6, 7] },
});
