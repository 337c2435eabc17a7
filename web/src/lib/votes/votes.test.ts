import { describe, expect, it } from 'vitest';
import type { Vote } from '$lib/api/types';
import { lanesOf } from '$lib/lanes/lanes';
import { reply, round, voice } from '$lib/lanes/samples';
import { bestOf, contenders, outcomeOf, veiled, votesOn } from './votes';

const [a, b] = [voice(1, 'Ada'), voice(2, 'Bo')];
const here = round(reply('r1', a), reply('r2', b));

function vote(change: Partial<Vote> = {}): Vote {
  return {
    id: 'v1',
    conversation_id: 'c1',
    round_number: 1,
    message_id: 'r1',
    user_id: 'u1',
    verdict: 'best',
    is_blind: false,
    contenders: ['r1', 'r2'].map((message_id) => ({ model: 'm', name: 'n', message_id, persona_id: null })),
    created_at: 1,
    ...change,
  };
}

describe('votes', () => {
  it('belong to a round by what they are about, also in a branch', () => {
    const elsewhere = vote({ id: 'v2', contenders: [] });
    expect(
      votesOn(here, { v1: vote({ conversation_id: 'other' }), v2: elsewhere }).map((each) => each.id),
    ).toEqual(['v1']);
  });

  it('make the newest mark the best, and a tie none', () => {
    const later = vote({ id: 'v2', user_id: 'u2', message_id: 'r2', created_at: 2 });
    expect(bestOf(votesOn(here, { v2: later, v1: vote() }))).toBe('r2');
    expect(bestOf([vote({ verdict: 'tie', message_id: null })])).toBeNull();
  });
});

describe('who voted before a branch and in it', () => {
  it('has one word there, and it is the last', () => {
    const before = vote({ message_id: 'r1' });
    const since = vote({ id: 'v2', message_id: null, verdict: 'tie', created_at: 2 });
    expect(votesOn(here, { v1: before, v2: since })).toEqual([since]);
    expect(bestOf(votesOn(here, { v1: before, v2: since }))).toBeNull();
  });
});

describe('a blind round', () => {
  it('is under letters from the moment it is sent, as the server will have it', () => {
    const shown = veiled([a, b]);
    expect(shown.map((each) => [each.id, each.seat, each.name])).toEqual([
      ['mind:A', 1, 'Voice A'],
      ['mind:B', 2, 'Voice B'],
    ]);
    expect(JSON.stringify(shown)).not.toMatch(/Ada|Bo|house:/);
  });

  it('says what was chosen once the names are known', () => {
    const lanes = lanesOf(here, [], []);
    expect(outcomeOf(vote(), lanes, 'You')).toBe('You chose Ada.');
    expect(outcomeOf(vote({ verdict: 'tie' }), lanes, 'Sam')).toBe('Sam voted for a tie.');
    expect(outcomeOf(vote({ verdict: 'both_bad' }), lanes, 'Sam')).toBe('Sam chose none of the answers.');
    const [hidden] = veiled([a]);
    expect(outcomeOf(vote(), lanesOf(round(reply('r1', hidden!)), [], []), 'You')).toBe('');
    expect(outcomeOf(undefined, lanes, 'You')).toBe('');
    const later = lanesOf(round(reply('r1', a), reply('r3', voice(1, 'Dee'), { replaces_id: 'r1' })), [], []);
    expect(outcomeOf(vote(), later, 'You')).toBe('You chose Ada.');
    expect(outcomeOf(vote({ message_id: 'r3' }), later, 'You')).toBe('You chose Dee.');
  });

  it('has the same lanes in the same order before and after the names are told', () => {
    const told = [
      { ...b, letter: 'A' },
      { ...a, letter: 'B' },
    ];
    const lanes = (voices: typeof told) =>
      lanesOf(round(reply('r1', voices[0]!), reply('r2', voices[1]!)), [], []).map((lane) => [
        lane.key,
        lane.versions[0]!.id,
      ]);
    expect(lanes(told)).toEqual(lanes(veiled([a, b])));
    expect(lanes(told).map(([, id]) => id)).toEqual(['r1', 'r2']);
  });

  it('lets one vote on answers that have text', () => {
    const lanes = lanesOf(round(reply('r1', a), reply('r2', b, { status: 'failed', content: '' })), [], []);
    expect(contenders(lanes).map((contender) => contender.message.id)).toEqual(['r1']);
  });
});
