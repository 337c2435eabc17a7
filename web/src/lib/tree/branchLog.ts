/** The branch log as data: every round by time, with the lines of the branches beside them. */
import type { Conversation, Tree, TreeRound } from '$lib/api/types';
import { lineageOf } from '$lib/conversations/branchFamily';
import { ordered } from './mapLayout';

export const LANE = 24;
export const LINE = 34;
const EDGE = 14;

export interface Entry {
  key: string;
  conversation: Conversation;
  round: TreeRound;
  x: number;
  y: number;
  isOn: boolean;
  isHere: boolean;
}

export interface Log {
  entries: Entry[];
  paths: { key: string; d: string; isOn: boolean }[];
  /** The x position at which the text begins. */
  edge: number;
  height: number;
}

export function logOf(tree: Tree, here: string): Log {
  const spoken = ordered(tree.nodes).filter((node) => node.rounds.length);
  const lanes = new Map(spoken.map((node, lane) => [node.conversation.id, lane]));
  const until = new Map(lineageOf(tree, here).map(({ node, last }) => [node.conversation.id, last]));
  const timeline = tree.nodes
    .flatMap((node) => node.rounds.map((round) => ({ node, round })))
    .sort((a, b) => a.round.created_at - b.round.created_at || a.round.number - b.round.number);
  const entries = timeline.map(({ node: { conversation, rounds }, round }, n) => ({
    key: `${conversation.id}/${round.number}`,
    conversation,
    round,
    x: EDGE + lanes.get(conversation.id)! * LANE,
    y: LINE / 2 + n * LINE,
    isOn: round.number <= (until.get(conversation.id) ?? -1),
    isHere: conversation.id === here && round === rounds.at(-1),
  }));
  const paths = spoken.flatMap(({ conversation }) => pathsOf(conversation, entries, until));
  return {
    entries,
    paths: paths.sort((a, b) => Number(a.isOn) - Number(b.isOn)),
    edge: EDGE + (Math.max(0, ...lanes.values()) + 1) * LANE,
    height: entries.length * LINE,
  };
}

function pathsOf(conversation: Conversation, entries: Entry[], until: Map<string, number>) {
  const own = entries.filter((entry) => entry.conversation.id === conversation.id);
  const [first, last] = [own[0], own.at(-1)];
  if (!first || !last) return [];
  const from = entries
    .filter(
      ({ conversation: { id }, round }) => id === conversation.parent_id && round.number < first.round.number,
    )
    .at(-1);
  const begin = from ? bend(from, first) : `M${first.x} ${first.y}`;
  const lit = own.filter((entry) => entry.isOn).at(-1);
  const paths = [{ key: conversation.id, d: `${begin}V${last.y}`, isOn: false }];
  if (until.has(conversation.id) && lit)
    paths.push({ key: `${conversation.id} on`, d: `${begin}V${lit.y}`, isOn: true });
  return paths;
}

function bend(from: Entry, to: Entry): string {
  const end = Math.min(from.y + LINE, to.y);
  return `M${from.x} ${from.y}C${from.x} ${from.y + 22} ${to.x} ${end - 24} ${to.x} ${end}`;
}
