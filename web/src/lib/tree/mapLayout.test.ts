import { describe, expect, it } from 'vitest';
import { branchName, familyOf, lineageOf, sizeOf } from '$lib/conversations/branchFamily';
import { layOut, ordered, step } from './mapLayout';
import { logOf } from './branchLog';
import { grown, SESSIONS } from './samples';
import type { Conversation } from '$lib/api/types';

describe('the branch map', () => {
  it('puts a branch that leaves later nearer to where it left, with all that hangs on it', () => {
    expect(ordered(SESSIONS.nodes).map((node) => node.conversation.id)).toEqual([
      'main',
      'keep',
      'device',
      'small',
    ]);
  });

  it('has a column for every round and a row for every branch', () => {
    const { spots, columns } = layOut(SESSIONS, 'main');
    expect(columns).toBe(7);
    const rounds = new Map(spots.map((spot) => [spot.round.number, spot.x]));
    expect(spots.every((spot) => rounds.get(spot.round.number) === spot.x)).toBe(true);
    expect(new Set(spots.map((spot) => `${spot.x} ${spot.y}`)).size).toBe(11);
  });

  it('marks the way to where one is, and no further', () => {
    const on = layOut(SESSIONS, 'device').spots.filter((spot) => spot.isOn);
    expect(on.map((spot) => spot.key)).toEqual([
      'main/1',
      'main/2',
      'main/3',
      'keep/4',
      'keep/5',
      'device/6',
      'device/7',
    ]);
    expect(on.filter((spot) => spot.isHere).map((spot) => spot.key)).toEqual(['device/7']);
  });

  it('offers to go on where one is and where nothing was said yet', () => {
    const tree = grown({ main: { rounds: [1, 2] }, empty: { parent: 'main', at: 1, rounds: [] } });
    expect(layOut(tree, 'main').opens.map((open) => open.conversation.id)).toEqual(['main', 'empty']);
  });

  it('hangs a reply that was asked for again beside its round, and another first question beside the first', () => {
    const tree = grown({
      main: { rounds: [1, 2] },
      again: { parent: 'main', at: 1, rounds: [1] },
      other: { parent: 'main', at: 0, rounds: [1] },
    });
    const { spots, wires } = layOut(tree, 'main');
    const xs = spots.filter((spot) => spot.round.number === 1).map((spot) => spot.x);
    expect(new Set(xs).size).toBe(1);
    expect(wires.every((wire) => !/NaN|undefined/.test(wire.d))).toBe(true);
  });

  it('is walked with arrows: along a branch, back to where it left, and across', () => {
    const { spots } = layOut(SESSIONS, 'main');
    const walk = (from: string, key: string) =>
      step(
        spots,
        spots.find((spot) => spot.key === from)!,
        key,
      )?.key;
    expect(walk('keep/4', 'ArrowRight')).toBe('keep/5');
    expect(walk('keep/4', 'ArrowLeft')).toBe('main/3');
    expect(walk('main/1', 'ArrowLeft')).toBeUndefined();
    expect(walk('main/4', 'ArrowDown')).toBe('keep/4');
    expect(walk('small/3', 'ArrowUp')).toBe('device/6');
    expect(walk('small/3', 'ArrowDown')).toBeUndefined();
  });
});

describe('the log of a tree', () => {
  it('lists every round in the order of time, each in the lane of its branch', () => {
    const { entries, edge } = logOf(SESSIONS, 'keep');
    const times = entries.map((entry) => entry.round.created_at);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    const lanes = new Map(entries.map((entry) => [entry.conversation.id, entry.x]));
    expect(new Set(lanes.values()).size).toBe(4);
    expect(Math.max(...lanes.values())).toBeLessThan(edge);
    expect(entries.filter((entry) => entry.isHere).map((entry) => entry.key)).toEqual(['keep/6']);
  });
});

describe('a family', () => {
  const known = Object.fromEntries(SESSIONS.nodes.map((node) => [node.conversation.id, node.conversation]));

  it('is everyone who comes from the same root', () => {
    const stranger = { id: 'x', parent_id: null, created_at: 0 } as Conversation;
    const ids = familyOf({ ...known, x: stranger }, 'device').map((each) => each.id);
    expect(ids).toEqual(['main', 'small', 'keep', 'device']);
    expect(familyOf({ ...known, x: stranger }, 'x')).toEqual([stranger]);
  });

  it('has names for all its lines', () => {
    expect(branchName(known['main']!)).toBe('Main conversation');
    expect(branchName(known['keep']!)).toBe('keep');
    expect(branchName({ title: '', parent_id: 'main', branch_round: 2 })).toBe('Branch at round 2');
    expect(branchName({ title: '', parent_id: 'main', branch_round: 0 })).toBe('Edited question');
  });

  it('is read from the root down, each as far as the next one left it', () => {
    const line = lineageOf(SESSIONS, 'device').map(({ node, last }) => [node.conversation.id, last]);
    expect(line).toEqual([
      ['main', 3],
      ['keep', 5],
      ['device', Infinity],
    ]);
  });

  it('counts what was said in all of it', () => {
    expect(sizeOf(SESSIONS.nodes)).toMatchObject({ branches: 4, rounds: 11 });
  });
});
