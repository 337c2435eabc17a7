import { describe, expect, it } from 'vitest';
import type { Outline } from '$lib/api/types';
import { reply, round, voice } from '$lib/lanes/samples';
import { lanesOf } from '$lib/lanes/lanes';
import { agreementOf, failedOutline, outlineOf, repliesIn, restOf, stancesOf } from './outline';

const chair = voice(1, 'Chair');

function outline(change: Partial<Outline> = {}): Outline {
  return { headline: 'Wait.', agreement: [], tensions: [], next_steps: [], map: [], ...change };
}

function found(made: Outline | null) {
  return made && { outline: made, critique: null, ranking: null };
}

const synthesis = reply('s1', chair, { role: 'synthesis', step: 'synthesis', turn_id: 't1' });

describe('the outline of a synthesis', () => {
  it('is the one made in the same turn, not in another', () => {
    const own = reply('o1', chair, { step: 'outline', turn_id: 't1', findings: found(outline()) });
    const other = reply('o2', chair, {
      step: 'outline',
      turn_id: 't2',
      findings: found(outline({ headline: 'Go.' })),
    });
    expect(outlineOf(round(synthesis, own, other), synthesis)?.headline).toBe('Wait.');
  });

  it('is found where it was drawn again later', () => {
    const read_replies = [{ message_id: 's1', seat: 1, name: 'Chair', label: '' }];
    const failed = reply('o1', chair, { step: 'outline', turn_id: 't1', status: 'failed', read_replies });
    const again = reply('o2', chair, {
      step: 'outline',
      turn_id: 't2',
      read_replies,
      findings: found(outline()),
    });
    expect(outlineOf(round(synthesis, failed, again), synthesis)?.headline).toBe('Wait.');
    expect(failedOutline(round(synthesis, failed, again), synthesis)).toBeNull();
  });

  it('falls back to what the text tells, and to nothing', () => {
    const told = { ...synthesis, findings: found(outline({ headline: 'Told.' })) };
    expect(outlineOf(round(told), told)?.headline).toBe('Told.');
    expect(outlineOf(round(synthesis), synthesis)).toBeNull();
  });

  it('that could not be read is known, so that it can be asked for again', () => {
    const failed = reply('o1', chair, { step: 'outline', turn_id: 't1', status: 'failed' });
    expect(failedOutline(round(synthesis, failed), synthesis)?.id).toBe('o1');
    expect(failedOutline(round(synthesis), synthesis)).toBeNull();
  });
});

describe('the agreement', () => {
  const cell = (stance: 'agrees' | 'partly' | 'disagrees', seat: number) => ({
    seat,
    stance,
    quote: 'q',
    message_id: 'm',
  });
  const topic = (...cells: ReturnType<typeof cell>[]) => ({ name: 'One', cells });
  const standing = (seat: number, isAbsent = false) => ({ voice: voice(seat), isAbsent });
  const all = [standing(1), standing(2), standing(3, true)];

  it('is counted: everyone agrees, someone disagrees, and the rest', () => {
    const map = [
      topic(cell('agrees', 1), cell('agrees', 2)),
      topic(cell('agrees', 1), cell('disagrees', 2)),
      topic(cell('agrees', 1), cell('partly', 2)),
      topic(cell('agrees', 1)),
    ];
    const counts = agreementOf(outline({ map }), all);
    expect(counts).toEqual({ topics: 4, shared: 1, disputed: 1 });
    expect(restOf(counts)).toBe(
      'Someone disagrees on 1. On the other 2 someone agrees only in part or does not mention it.',
    );
    expect(restOf({ topics: 2, shared: 2, disputed: 0 })).toBe('');
    expect(restOf({ topics: 2, shared: 0, disputed: 0 })).toBe(
      'On each, someone agrees only in part or does not mention it.',
    );
  });

  it('counts neither who is silent as agreeing nor who is absent at all', () => {
    const map = [topic(cell('agrees', 1), cell('agrees', 2))];
    expect(agreementOf(outline({ map }), all).shared).toBe(1);
    expect(agreementOf(outline({ map }), [standing(1), standing(2), standing(3)]).shared).toBe(0);
    expect(repliesIn(all)).toBe('two replies');
  });

  it('calls absent whom the synthesis did not read, whatever they said since', () => {
    const [one, two] = [voice(1), voice(2)];
    const messages = [
      reply('a', one),
      reply('b', two, { status: 'failed', content: '' }),
      reply('c', two, { replaces_id: 'b' }),
    ];
    const read = { ...synthesis, read_replies: [{ message_id: 'a', seat: 1, name: one.name, label: '' }] };
    const lanes = lanesOf(round(...messages, read), [], []).filter((lane) => lane.step === 'answer');
    expect(stancesOf(lanes, read).map((stance) => stance.isAbsent)).toEqual([false, true]);
  });
});
