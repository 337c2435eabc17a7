import { describe, expect, it } from 'vitest';
import type { Draft, Turn } from '$lib/api/types';
import { costOf, lanesOf, latest, seatsOf, stateOf } from './lanes';
import { draft, reply, round, turn, usage, voice } from './samples';

const [a, b, c] = [voice(1, 'Ada'), voice(2, 'Bo'), voice(3, 'Cy')];

describe('the lanes of a round', () => {
  it('are there as soon as the table is set, and keep their keys to the end', () => {
    const stages = [
      lanesOf(round(), [turn([a, b], { state: 'queued' })], []),
      lanesOf(round(), [turn([a, b])], [draft('r1', a)]),
      lanesOf(round(reply('r1', a)), [turn([a, b])], [draft('r2', b, { content: 'So', number: 1 })]),
      lanesOf(round(reply('r1', a), reply('r2', b)), [turn([a, b], { state: 'complete' })], []),
    ];
    for (const lanes of stages) expect(lanes.map((lane) => lane.key)).toEqual([a.id, b.id]);
    expect(stages.map((lanes) => lanes.map(stateOf))).toEqual([
      ['queued', 'queued'],
      ['asked', 'queued'],
      ['finished', 'writing'],
      ['finished', 'finished'],
    ]);
  });

  it('stand in the order in which they were invited, else of their seats, whoever spoke first', () => {
    const names = (turns: Turn[]) =>
      lanesOf(round(reply('r1', c), reply('r2', a), reply('r3', b)), turns, []).map(
        ({ voice }) => voice.name,
      );
    expect(names([])).toEqual(['Ada', 'Bo', 'Cy']);
    expect(names([turn([c, a], { state: 'complete' })])).toEqual(['Cy', 'Ada', 'Bo']);
  });

  it('keep the versions of a reply together, also when another model took the seat', () => {
    const other = { ...voice(1, 'Dee'), id: b.id };
    const messages = [
      reply('r1', a),
      reply('r2', b),
      reply('r3', other, { replaces_id: 'r1', turn_id: 't2' }),
    ];
    const lanes = lanesOf(round(...messages), [], []);
    expect(lanes.map((lane) => lane.versions.map((version) => version.id))).toEqual([['r1', 'r3'], ['r2']]);
    expect(lanes[0]!.key).toBe(a.id);
    expect(lanes.map((lane) => lane.voice.name)).toEqual(['Dee', 'Bo']);
  });

  it('show a reply that is asked for again as queued behind its last version', () => {
    const again = turn([a], { id: 't2', purpose: 'retry', state: 'queued', message_id: 'r1' });
    const [lane] = lanesOf(round(reply('r1', a)), [turn([a], { state: 'complete' }), again], []);
    expect(lane!.versions.map((version) => version.state)).toEqual(['finished', 'queued']);
    const [begun] = lanesOf(
      round(reply('r1', a)),
      [{ ...again, state: 'running' }],
      [draft('r2', a, { turn_id: 't2', replaces_id: 'r1', content: 'x', number: 1 })],
    );
    expect(begun!.versions.map((version) => version.state)).toEqual(['finished', 'writing']);
  });

  it('tell a voice that was not asked yet from one that was asked and is silent', () => {
    const state = (change: Partial<Draft>) => stateOf(lanesOf(round(), [], [draft('r1', a, change)])[0]!);
    expect(state({})).toBe('asked');
    expect(state({ number: 1, thinking: 'Hm' })).toBe('thinking');
    expect(state({ number: 2, thinking: 'Hm', content: 'So' })).toBe('writing');
    // A continued reply has its beginning already, and no text of its own yet.
    expect(state({ number: 0, content: 'Once upon' })).toBe('asked');
    const next = (mode: string, change: Partial<Turn> = {}) =>
      lanesOf(round(), [turn([a, b, c], { mode, ...change })], []).map((lane) => {
        const version = latest(lane);
        return version.kind === 'queued' && version.isNext;
      });
    expect(next('parallel')).toEqual([true, true, true]);
    expect(next('relay')).toEqual([true, false, false]);
    expect(next('second_opinion')).toEqual([true, false, false]);
    expect(next('brain_trust', { chair: c })).toEqual([true, true, true, false]);
    expect(next('parallel', { state: 'queued' })).toEqual([false, false, false]);
    const asked = turn([a, b], { mode: 'relay' });
    const lanes = lanesOf(round(), [asked], [draft('r1', a)]);
    expect(lanes.map(stateOf)).toEqual(['asked', 'queued']);
  });

  it('show a retry beside a neighbour that still writes, each in its own state', () => {
    const lanes = lanesOf(
      round(reply('r1', a, { status: 'failed' })),
      [turn([a, b]), turn([a], { id: 't2', purpose: 'retry', message_id: 'r1' })],
      [
        draft('r2', b, { number: 3, content: 'So' }),
        draft('r3', a, { turn_id: 't2', replaces_id: 'r1', number: 1, content: 'Ag' }),
      ],
    );
    expect(lanes.map((lane) => lane.versions.map((version) => version.state))).toEqual([
      ['failed', 'writing'],
      ['writing'],
    ]);
  });

  it('do not show a draft beside the message it became', () => {
    const [lane] = lanesOf(round(reply('r1', a)), [], [draft('r1', a, { content: 'Be' })]);
    expect(lane!.versions).toHaveLength(1);
    expect(latest(lane!).kind).toBe('message');
  });

  it('leave drafts of other rounds alone', () => {
    expect(lanesOf(round(), [], [draft('r1', a, { round_number: 2 })])).toEqual([]);
  });

  it('say when a provider asked to wait', () => {
    const waiting = { until: 1, attempt: 1, attempts: 2, reason: 'Slow down.' };
    expect(stateOf(lanesOf(round(), [], [draft('r1', a, { waiting })])[0]!)).toBe('waiting');
  });

  it('draw the table: hollow waits, pulsing speaks, solid is done, red failed', () => {
    const messages = [reply('r1', a), reply('r2', b, { status: 'failed' })];
    const lanes = lanesOf(
      round(...messages),
      [turn([a, b, c, voice(4)], { state: 'running' })],
      [draft('r3', c, { content: 'x', number: 1 }), draft('r4', voice(5), { number: 0 })],
    );
    expect(seatsOf(lanes).map((seat) => seat.state)).toEqual([
      'done',
      'failed',
      'speaking',
      'waiting',
      'waiting',
    ]);
  });
});

describe('the cost of a round', () => {
  it('counts every version that was paid', () => {
    expect(costOf(round(reply('r1', a), reply('r2', a, { replaces_id: 'r1' })))).toEqual({
      micros: 2_000,
      isPartial: false,
    });
  });

  it('is unknown when one price is, and nothing for what was not charged', () => {
    expect(costOf(round(reply('r1', a, { usage: usage({ cost_micros: null }) })))).toEqual({
      micros: 0,
      isPartial: true,
    });
    expect(costOf(round(reply('r1', a, { usage: null })))).toEqual({ micros: 0, isPartial: false });
  });
});
