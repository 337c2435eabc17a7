import { describe, expect, it } from 'vitest';
import { lanesOf } from './lanes';
import { milestones, standingsOf } from './milestones';
import { progressOf, settingOf } from './progress';
import { cutSentence } from './replies';
import { draft, reply, round, turn, usage, voice } from './samples';

const [a, b, c] = [voice(1, 'Ada'), voice(2, 'Bo'), voice(3, 'Cy')];
const asked = turn([a, b, c]);

describe('milestones', () => {
  const begun = lanesOf(round(), [asked], []);
  const standings = standingsOf('t1', begun);

  it('say once how many are answering', () => {
    expect(milestones('t1', begun, new Map())).toEqual(['Three voices are answering']);
    expect(milestones('t1', begun, standings)).toEqual([]);
    const alone = lanesOf(round(), [turn([a])], []);
    expect(milestones('t1', alone, new Map())).toEqual(['Ada is answering']);
  });

  it('say who finished, and how long the reply is; words on the way are silent', () => {
    const writing = lanesOf(round(), [asked], [draft('r1', a, { content: 'one two' })]);
    expect(milestones('t1', writing, standings)).toEqual([]);
    const done = lanesOf(round(reply('r1', a, { content: 'one two three' })), [asked], []);
    expect(milestones('t1', done, standingsOf('t1', writing))).toEqual(['Ada finished, 3 words']);
  });

  it('say who failed and why, who stopped, who was cut off', () => {
    const failure = { code: 'rate_limited', message: 'Wait a minute.', detail: null, retry_at: null };
    const messages = [
      reply('r1', a, { status: 'failed', content: '', failure }),
      reply('r2', b, { status: 'stopped', content: 'one' }),
      reply('r3', c, { status: 'interrupted', content: 'one two' }),
    ];
    expect(milestones('t1', lanesOf(round(...messages), [asked], []), standings)).toEqual([
      'Ada failed: limit reached',
      'Bo stopped after 1 word',
      'Cy was cut off after 2 words',
    ]);
  });

  it('say when a mind is asked again', () => {
    const done = lanesOf(round(reply('r1', a)), [], []);
    const again = lanesOf(
      round(reply('r1', a)),
      [turn([a], { id: 't2', purpose: 'retry', message_id: 'r1' })],
      [],
    );
    expect(milestones('t1', again, standingsOf('t1', done))).toEqual(['Ada is answering']);
  });
});

describe('the bar of a round', () => {
  it('says how far it is and what it cost so far, then what it cost', () => {
    const half = round(reply('r1', a, { usage: usage({ cost_micros: 72_200 }) }));
    const asked = turn([a, b]);
    expect(progressOf(half, lanesOf(half, [asked], []), asked)).toBe('1 of 2 finished · $0.0722 so far');
    const whole = round(reply('r1', a), reply('r2', b));
    expect(progressOf(whole, lanesOf(whole, [], []), undefined)).toBe('$0.0020');
  });

  it('says how long it took, and from how many it was brought together', () => {
    const whole = round(reply('r1', a), reply('r2', b), reply('r3', a, { step: 'synthesis' }));
    const over = turn([a, b], { state: 'complete', finished_at: 21_300 });
    expect(progressOf(whole, lanesOf(whole, [over], []), over)).toBe(
      '2 advisors + summary · $0.0030 · 21.3 s',
    );
  });

  it('does not count to one, and does not call free what has no price', () => {
    const one = round(reply('r1', a, { usage: usage({ cost_micros: null }) }));
    expect(progressOf(one, lanesOf(one, [], []), undefined)).toBe('price unknown');
    const none = round(reply('r1', a, { usage: null, status: 'failed' }));
    expect(progressOf(none, lanesOf(none, [], []), undefined)).toBe('');
  });

  it('shows the known part of a price whose other part is unknown', () => {
    const paid = reply('r1', a, { usage: usage({ cost_micros: 2_000 }) });
    const both = round(paid, reply('r2', b, { usage: usage({ cost_micros: null }) }));
    expect(progressOf(both, lanesOf(both, [], []), undefined)).toBe('at least $0.0020');
  });

  it('names the mode and what each sees; of an old round it knows only how many answered', () => {
    const lanes = lanesOf(round(reply('r1', a), reply('r2', b)), [], []);
    expect(settingOf(lanes, turn([a, b], { visibility: 'own_lane' }))).toBe('Parallel · each sees only you');
    expect(settingOf(lanes, undefined)).toBe('Parallel');
    expect(settingOf(lanes.slice(0, 1), turn([a], { mode: 'quick' }))).toBe('One model');
  });
});

it('a broken-off reply says how far it came', () => {
  const failure = { code: 'cut', message: '', detail: null, retry_at: null };
  expect(cutSentence(reply('r1', a, { status: 'interrupted', content: 'one two', failure }), 'OpenAI')).toBe(
    'Connection lost after 2 words.',
  );
  expect(
    cutSentence(
      reply('r1', a, { status: 'interrupted', content: '', failure: { ...failure, code: 'timeout_idle' } }),
      'OpenAI',
    ),
  ).toBe('OpenAI stopped sending before the first word.');
  expect(
    cutSentence(
      reply('r1', a, {
        status: 'interrupted',
        content: 'one two',
        failure: { ...failure, code: 'filtered' },
      }),
      'OpenAI',
    ),
  ).toBe('Stopped by the provider’s safety filter after 2 words.');
  expect(cutSentence(reply('r1', a, { status: 'stopped', content: 'one' }), '')).toBe(
    'Stopped after 1 word.',
  );
});
