import { describe, expect, it } from 'vitest';
import type { Message } from '$lib/api/types';
import { lanesOf } from '$lib/lanes/lanes';
import { announcementsFor, laneStates } from './announcements';
import { progressOf, settingOf } from './progress';
import { cutSentence } from '$lib/lanes/replies';
import { draft, reply, round, turn, usage, voice } from '$lib/lanes/samples';

const [a, b, c] = [voice(1, 'Ada'), voice(2, 'Bo'), voice(3, 'Cy')];
const asked = turn([a, b, c]);

describe('milestones', () => {
  const begun = lanesOf(round(), [asked], []);
  const standings = laneStates('t1', begun);

  it('say once how many are answering', () => {
    expect(announcementsFor('t1', begun, new Map())).toEqual(['Three voices are answering']);
    expect(announcementsFor('t1', begun, standings)).toEqual([]);
    const alone = lanesOf(round(), [turn([a])], []);
    expect(announcementsFor('t1', alone, new Map())).toEqual(['Ada is answering']);
  });

  it('say who finished, and how long the reply is; words on the way are silent', () => {
    const writing = lanesOf(round(), [asked], [draft('r1', a, { content: 'one two', number: 2 })]);
    expect(announcementsFor('t1', writing, standings)).toEqual([]);
    const done = lanesOf(round(reply('r1', a, { content: 'one two three' })), [asked], []);
    expect(announcementsFor('t1', done, laneStates('t1', writing))).toEqual(['Ada finished, 3 words']);
  });

  it('say who failed and why, who stopped, who was cut off', () => {
    const failure = { code: 'rate_limited', message: 'Wait a minute.', detail: null, retry_at: null };
    const messages = [
      reply('r1', a, { status: 'failed', content: '', failure }),
      reply('r2', b, { status: 'stopped', content: 'one' }),
      reply('r3', c, { status: 'interrupted', content: 'one two' }),
    ];
    expect(announcementsFor('t1', lanesOf(round(...messages), [asked], []), standings)).toEqual([
      'Ada failed: limit reached',
      'Bo stopped after 1 word',
      'Cy was cut off after 2 words',
    ]);
  });

  it('say that a voice answers when it is asked, not while it waits for others', () => {
    const relay = turn([a, b], { mode: 'relay' });
    const first = lanesOf(round(), [relay], [draft('r1', a)]);
    expect(announcementsFor('t1', first, new Map())).toEqual(['Ada is answering']);
    const second = lanesOf(round(reply('r1', a, { content: 'one' })), [relay], [draft('r2', b)]);
    expect(announcementsFor('t1', second, laneStates('t1', first))).toEqual([
      'Bo is answering',
      'Ada finished, 1 word',
    ]);
    const behind = lanesOf(round(), [turn([a, b], { state: 'queued' })], []);
    expect(announcementsFor('t1', behind, new Map())).toEqual([]);
    expect(announcementsFor('t1', begun.slice(0, 2), laneStates('t1', behind))).toEqual([
      'Two voices are answering',
    ]);
  });

  it('call a model that declined no failure', () => {
    const failure = {
      code: 'filtered',
      message: 'This model declined.',
      detail: null,
      retry_at: null,
    };
    const declined = reply('r1', a, { status: 'failed', content: '', failure });
    expect(announcementsFor('t1', lanesOf(round(declined), [asked], []), standings)).toContain(
      'Ada declined',
    );
  });

  it('say when a mind is asked again', () => {
    const done = lanesOf(round(reply('r1', a)), [], []);
    const again = lanesOf(
      round(reply('r1', a)),
      [turn([a], { id: 't2', purpose: 'retry', message_id: 'r1' })],
      [],
    );
    expect(announcementsFor('t1', again, laneStates('t1', done))).toEqual(['Ada is answering']);
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

  it('names who did not finish and how, also when all is over', () => {
    const failure = {
      code: 'filtered',
      message: 'This model declined.',
      detail: null,
      retry_at: null,
    };
    const said = (...messages: Message[]) => {
      const over = round(...messages.map((message) => ({ ...message, usage: null })));
      return progressOf(over, lanesOf(over, [], []), undefined);
    };
    const failed = { status: 'failed' as const, content: '' };
    expect(said(reply('r1', a), reply('r2', b, failed))).toBe('1 of 2 finished, Bo failed');
    expect(said(reply('r1', a, failed), reply('r2', b, failed), reply('r3', c))).toBe(
      '1 of 3 finished, Ada and Bo failed',
    );
    expect(said(reply('r1', a, { status: 'stopped' }), reply('r2', b, { ...failed, failure }))).toBe(
      '0 of 2 finished, Ada stopped, Bo declined',
    );
    expect(said(reply('r1', a), reply('r2', b), reply('r3', c, { ...failed, step: 'synthesis' }))).toBe(
      '2 of 3 finished, the summary failed',
    );
    expect(said(reply('r1', a, failed))).toBe('Ada failed');
    const five = [1, 2, 3, 4, 5].map((seat) => reply(`r${seat}`, voice(seat), seat > 1 ? failed : {}));
    expect(said(...five)).toBe('1 of 5 finished, 4 failed');
    // Tried again, it is none of these any more.
    expect(said(reply('r1', a), reply('r2', b, failed), reply('r3', b, { replaces_id: 'r2' }))).toBe('');
  });

  it('says that a round waits while nobody in it was asked', () => {
    const behind = turn([a, b], { state: 'queued' });
    expect(progressOf(round(), lanesOf(round(), [behind], []), behind)).toBe('waiting');
  });

  it('does not count to one, and does not call free what has no price', () => {
    const one = round(reply('r1', a, { usage: usage({ cost_micros: null }) }));
    expect(progressOf(one, lanesOf(one, [], []), undefined)).toBe('price unknown');
    const none = round(reply('r1', a, { usage: null, status: 'failed' }));
    expect(progressOf(none, lanesOf(none, [], []), undefined)).toBe('Ada failed');
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
