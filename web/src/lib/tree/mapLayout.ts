/**
 * Layout of the branch map: rounds in columns, each branch in a row of its own.
 *
 *   ●──●──●──●        a branch that leaves later stands nearer to where it left,
 *      │  └──●──●     so that no line crosses another
 *      └──●──●
 */
import type { Conversation, Tree, TreeNode, TreeRound } from '$lib/api/types';
import { lineageOf } from '$lib/conversations/branchFamily';

export const COLUMN = 158;
const FIRST_X = 92;
const ROW = 162;
const FIRST_Y = 92;
const BEND = 24;

export interface Spot {
  key: string;
  conversation: Conversation;
  round: TreeRound;
  row: number;
  x: number;
  y: number;
  /** True on the way to the open branch. */
  isOn: boolean;
  /** True where the reader is. */
  isHere: boolean;
}

export interface Label {
  conversation: Conversation;
  x: number;
  y: number;
  isOn: boolean;
}

/** A place to continue a branch: of the open branch, and of branches that have no messages yet. */
export interface Open {
  conversation: Conversation;
  x: number;
  y: number;
  isOn: boolean;
}

export interface Wire {
  key: string;
  d: string;
  kind: 'other' | 'on' | 'next';
}

export interface Layout {
  columns: number;
  width: number;
  height: number;
  spots: Spot[];
  labels: Label[];
  opens: Open[];
  /** The wires; those on the way to the open branch come last and are drawn over the others. */
  wires: Wire[];
}

export const xOf = (round: number): number => FIRST_X + (round - 1) * COLUMN;
const yOf = (row: number): number => FIRST_Y + row * ROW;

/** The root in the first row, then branch by branch with all that hangs on each. */
export function ordered(nodes: TreeNode[]): TreeNode[] {
  const ids = new Set(nodes.map((node) => node.conversation.id));
  const isRoot = (node: TreeNode) => !ids.has(node.conversation.parent_id ?? '');
  const walk = (node: TreeNode): TreeNode[] => [
    node,
    ...nodes
      .filter((each) => each.conversation.parent_id === node.conversation.id)
      .sort((a, b) => leaves(b) - leaves(a) || b.conversation.created_at - a.conversation.created_at)
      .flatMap(walk),
  ];
  return nodes.filter(isRoot).flatMap(walk);
}

/** The round of its parent after which a branch stands by itself. */
function leaves({ conversation, rounds }: TreeNode): number {
  const point = conversation.branch_round ?? 0;
  return rounds[0] ? Math.min(point, rounds[0].number - 1) : point;
}

export function layOut(tree: Tree, here: string): Layout {
  const nodes = ordered(tree.nodes);
  const rows = new Map(nodes.map((node, row) => [node.conversation.id, row]));
  const until = new Map(lineageOf(tree, here).map(({ node, last }) => [node.conversation.id, last]));
  const isOn = (id: string, round: number) => round <= (until.get(id) ?? -1);

  const spots = nodes.flatMap((node, row) =>
    node.rounds.map((round) => ({
      key: `${node.conversation.id}/${round.number}`,
      conversation: node.conversation,
      round,
      row,
      x: xOf(round.number),
      y: yOf(row),
      isOn: isOn(node.conversation.id, round.number),
      isHere: node.conversation.id === here && round === node.rounds.at(-1),
    })),
  );
  const opens = nodes
    .filter((node) => node.conversation.id === here || !node.rounds.length)
    .map((node) => openOf(node, rows, here));
  const columns = Math.max(1, ...spots.map((spot) => spot.round.number), ...opens.map(columnOf));
  return {
    columns,
    width: xOf(columns) + COLUMN / 2 + 14,
    height: yOf(nodes.length - 1) + 118,
    spots,
    labels: nodes.map((node, row) => ({
      conversation: node.conversation,
      x: xOf(firstOf(node)),
      y: yOf(row),
      isOn: until.has(node.conversation.id),
    })),
    opens,
    wires: nodes
      .flatMap((node) => wiresOf(node, rows, until.get(node.conversation.id)))
      .concat(opens.flatMap(nextWire))
      .sort((a, b) => Number(a.kind === 'on') - Number(b.kind === 'on')),
  };
}

function firstOf(node: TreeNode): number {
  return node.rounds[0]?.number ?? leaves(node) + 1;
}

function openOf(node: TreeNode, rows: Map<string, number>, here: string): Open {
  const next = (node.rounds.at(-1)?.number ?? leaves(node)) + 1;
  const { conversation } = node;
  return { conversation, x: xOf(next), y: yOf(rows.get(conversation.id)!), isOn: conversation.id === here };
}

function columnOf({ x }: Open): number {
  return (x - FIRST_X) / COLUMN + 1;
}

/** Returns the wires of a branch, from its parent along its line: the whole, and the part on the way to the open branch. */
function wiresOf(node: TreeNode, rows: Map<string, number>, until: number | undefined): Wire[] {
  const { id, parent_id } = node.conversation;
  const y = yOf(rows.get(id)!);
  const [first, last] = [firstOf(node), node.rounds.at(-1)?.number ?? firstOf(node)];
  const from = parent_id === null ? undefined : rows.get(parent_id);
  const begin = from === undefined ? `M${xOf(first)} ${y}` : elbow(leaves(node), yOf(from), y);
  const line = (end: number) => `${begin}H${xOf(Math.max(first, end))}`;
  const wires: Wire[] = [{ key: `${id} other`, d: line(last), kind: 'other' }];
  if (until !== undefined) wires.push({ key: `${id} on`, d: line(Math.min(last, until)), kind: 'on' });
  return wires;
}

/** Out of the parent's line half a column after the round it leaves, and down. */
function elbow(round: number, from: number, to: number): string {
  const [start, turn] = [xOf(round), xOf(round) + COLUMN / 2];
  // A first question asked differently hangs beside the first, before which there is nothing.
  if (round < 1)
    return `M${xOf(1)} ${from}H${turn + BEND}Q${turn} ${from} ${turn} ${from + BEND}${down(turn, to)}`;
  return `M${start} ${from}H${turn - BEND}Q${turn} ${from} ${turn} ${from + BEND}${down(turn, to)}`;
}

function down(x: number, to: number): string {
  return `V${to - BEND}Q${x} ${to} ${x + BEND} ${to}`;
}

function nextWire({ conversation, x, y, isOn }: Open): Wire[] {
  return isOn ? [{ key: `${conversation.id} next`, d: `M${x - COLUMN} ${y}H${x - 14}`, kind: 'next' }] : [];
}

/** The spot an arrow key leads to, or none. */
export function step(spots: Spot[], from: Spot, key: string): Spot | undefined {
  const row = spots.filter((spot) => spot.row === from.row);
  const at = row.indexOf(from);
  if (key === 'ArrowRight') return row[at + 1];
  if (key === 'ArrowLeft') return row[at - 1] ?? before(spots, from);
  if (key === 'ArrowDown') return nearest(spots, from, from.row + 1, 1);
  if (key === 'ArrowUp') return nearest(spots, from, from.row - 1, -1);
  return undefined;
}

/** The round a branch goes on from. */
function before(spots: Spot[], { conversation, round }: Spot): Spot | undefined {
  const above = spots.filter((spot) => spot.conversation.id === conversation.parent_id);
  return above.filter((spot) => spot.round.number < round.number).at(-1) ?? above[0];
}

/** Returns the closest spot of this row, or of the next row in the same direction that has any. */
function nearest(spots: Spot[], from: Spot, row: number, way: 1 | -1): Spot | undefined {
  const there = spots.filter((spot) => spot.row === row);
  const next = [...there].sort((a, b) => Math.abs(a.x - from.x) - Math.abs(b.x - from.x))[0];
  if (next) return next;
  return spots.some((spot) => (spot.row - row) * way > 0) ? nearest(spots, from, row + way, way) : undefined;
}
