import { describe, expect, it } from 'vitest';
import type { Outline } from '$lib/api/types';
import { reply, round, voice } from '../samples';
import { consensus, failedOutline, havingRead, outlineOf } from './outline';

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

describe('the consensus', () => {
  const cell = (stance: 'agrees' | 'partly' | 'disagrees', seat: number) => ({
    seat,
    stance,
    quote: 'q',
    message_id: 'm',
  });

  it('is the share of what was said; silence does not count', () => {
    const map = [{ name: 'One', cells: [cell('agrees', 1), cell('partly', 2), cell('disagrees', 3)] }];
    expect(consensus(outline({ map }))).toBe(0.5);
    expect(consensus(outline())).toBeNull();
  });
});

describe('words', () => {
  it('say how many were read', () => {
    expect(havingRead(4, 4)).toBe('having read all four');
    expect(havingRead(2, 2)).toBe('having read both');
    expect(havingRead(3, 4)).toBe('having read three of four');
  });
});
