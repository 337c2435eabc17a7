import { describe, expect, it } from 'vitest';
import type { Draft, Message } from '$lib/api/types';
import { lanesOf } from '$lib/lanes/lanes';
import { draft, reply, round, turn, voice } from '$lib/lanes/samples';
import { coverageOf, includedIn, newsSentences, readSentence } from './coverage';

const VOICES = [voice(1, 'Ada'), voice(2, 'Bea'), voice(3, 'Cleo'), voice(4, 'Falcon')] as const;
const [ada, bea, cleo, falcon] = VOICES;
const failed = { status: 'failed', content: '' } as const;

function synthesisOf(...read: Message[]): Message {
  return reply('s', ada, {
    role: 'synthesis',
    step: 'synthesis',
    read_replies: read.map(({ id, voice }) => ({
      message_id: id,
      seat: voice!.seat,
      name: voice!.name,
      label: '',
    })),
  });
}

function lanesWith(messages: Message[], drafts: Draft[] = []) {
  return lanesOf(round(...messages), [turn([...VOICES], { state: 'complete' })], drafts);
}

const a = reply('a', ada);
const b = reply('b', bea);
const c = reply('c', cleo);
const f = reply('f', falcon, failed);
const three = synthesisOf(a, b, c);

describe('what a synthesis has read', () => {
  it('is all of them, or as many as it was shown', () => {
    const falconAnswered = reply('f', falcon);
    const four = synthesisOf(a, b, c, falconAnswered);
    const all = coverageOf(four, lanesWith([a, b, c, falconAnswered, four]))!;
    expect([readSentence(all, false), newsSentences(all)]).toEqual(['having read all four', []]);
    const some = coverageOf(three, lanesWith([a, b, c, f, three]))!;
    expect([readSentence(some, false), newsSentences(some)]).toEqual(['having read three of four', []]);
    const two = synthesisOf(a, b);
    expect(readSentence(coverageOf(two, lanesWith([a, b, two]))!, false)).toBe('having read both');
  });

  it('does not grow with a retry, and who answered since is named', () => {
    const late = reply('f2', falcon, { replaces_id: 'f' });
    const read = coverageOf(three, lanesWith([a, b, c, f, late, three]))!;
    expect(readSentence(read, false)).toBe('having read three of four');
    expect(read.unread.map((each) => each.name)).toEqual(['Falcon']);
    expect(newsSentences(read)).toEqual(['Falcon answered after this was written.']);
  });

  it('does not count a retry that is running', () => {
    const running = draft('f2', falcon, { replaces_id: 'f', content: 'Half', turn_id: 't2' });
    const read = coverageOf(three, lanesWith([a, b, c, f, three], [running]))!;
    expect(readSentence(read, false)).toBe('having read three of four');
    expect(read.unread).toEqual([]);
    expect(newsSentences(read)).toEqual(['Falcon is answering again.']);
  });

  it('is an earlier version where a reply was written again since', () => {
    const newer = reply('b2', bea, { replaces_id: 'b' });
    const lanes = lanesWith([a, b, newer, c, f, three]);
    const read = coverageOf(three, lanes)!;
    expect(readSentence(read, false)).toBe('having read three of four, one in an earlier version');
    expect(newsSentences(read)).toEqual(['Bea has a newer reply.']);
    expect(lanes.slice(0, 4).map((lane) => includedIn(three, lane))).toEqual([
      'whole',
      'earlier',
      'whole',
      'not',
    ]);
  });

  it('stays what it is when a newer version failed', () => {
    const worse = reply('b2', bea, { ...failed, replaces_id: 'b' });
    const read = coverageOf(three, lanesWith([a, b, worse, c, f, three]))!;
    expect([read.changed, newsSentences(read)]).toEqual([[], []]);
  });

  it('holds in a branch that has the synthesis alone', () => {
    expect(readSentence(coverageOf(three, lanesWith([three]))!, false)).toBe('having read all three');
  });

  it('is told while it writes, and not claimed where nothing was written or nobody knows', () => {
    const writing = draft('s', ada, { step: 'synthesis', read_replies: three.read_replies });
    expect(readSentence(coverageOf(writing, lanesWith([a, b, c, f], [writing]))!, true)).toBe(
      'reading three of four',
    );
    expect(coverageOf({ ...three, ...failed }, lanesWith([a, b, c, f]))).toBeNull();
    expect(coverageOf({ ...three, read_replies: [] }, lanesWith([a, b, c, f]))).toBeNull();
  });
});
