import { describe, expect, it } from 'vitest';
import type { Draft, Message, Voice } from '$lib/api/types';
import { lanesOf } from '$lib/lanes/lanes';
import { draft, reply, round, turn, voice } from '$lib/lanes/samples';
import { rankingTableOf } from './ranking';

const VOICES = [voice(1, 'Ada'), voice(2, 'Bea'), voice(3, 'Cleo')];
const [ada, bea, cleo] = VOICES as [Voice, Voice, Voice];
const answers = VOICES.map((each) => reply(each.name, each));

function review(
  by: Voice,
  order: string[] | null,
  change: Partial<Message> = {},
  places: number[] = [],
): Message {
  const read = answers.filter((answer) => answer.voice!.id !== by.id);
  return reply(`r${by.name}`, by, {
    role: 'critic',
    step: 'review',
    read_replies: read.map((each, n) => ({
      message_id: each.id,
      seat: each.voice!.seat,
      name: each.voice!.name,
      label: `Answer ${'AB'[n]}`,
    })),
    findings: order && { outline: null, critique: null, ranking: { message_ids: order, places } },
    ...change,
  });
}

function table(messages: Message[], drafts: Draft[] = []) {
  return rankingTableOf(lanesOf(round(...messages), [turn(VOICES, { state: 'complete' })], drafts));
}

function told(places: ReturnType<typeof rankingTableOf>) {
  return places!.rows.map((row) => [row.voice.name, row.place, row.isTied, row.mean]);
}

describe('the places of a peer review', () => {
  it('are a row for each answer, best first, with the place from each of the others', () => {
    const places = table([
      ...answers,
      review(ada, ['Bea', 'Cleo']),
      review(bea, ['Ada', 'Cleo']),
      review(cleo, ['Bea', 'Ada']),
    ])!;
    expect(told(places)).toEqual([
      ['Bea', 1, false, 1],
      ['Ada', 2, false, 1.5],
      ['Cleo', 3, false, 2],
    ]);
    expect(places.reviewers.map((reviewer) => reviewer.name)).toEqual(['Ada', 'Bea', 'Cleo']);
    expect(places.rows[0]!.marks.map((mark) => (mark.kind === 'place' ? mark.place : mark.kind))).toEqual([
      1,
      'own',
      1,
    ]);
    expect(places.notes).toEqual([]);
  });

  it('are shared by those with the same mean, and by those whom a reviewer did not tell apart', () => {
    const tie = table([
      ...answers,
      review(ada, ['Bea', 'Cleo'], {}, [1, 1]),
      review(bea, ['Ada', 'Cleo']),
      review(cleo, ['Bea', 'Ada']),
    ])!;
    expect(told(tie)).toEqual([
      ['Bea', 1, false, 1.25],
      ['Ada', 2, false, 1.5],
      ['Cleo', 3, false, 1.75],
    ]);
    expect(tie.rows[0]!.marks[0]).toEqual({ kind: 'place', place: 1, isTied: true, isEarlier: false });
    const even = table([
      ...answers,
      review(ada, ['Bea', 'Cleo']),
      review(bea, ['Cleo', 'Ada']),
      review(cleo, ['Ada', 'Bea']),
    ])!;
    expect(even.rows.map((row) => [row.place, row.isTied])).toEqual([
      [1, true],
      [1, true],
      [1, true],
    ]);
  });

  it('say whose review was no ranking, failed, broke off or is being written', () => {
    const mixed = [...answers, review(ada, null), review(bea, null, { status: 'failed', content: '' })];
    const writing = draft('d', cleo, {
      step: 'review',
      content: 'Ranking: A >',
      read_replies: review(cleo, null).read_replies,
    });
    const places = table(mixed, [writing])!;
    expect(places.notes).toEqual([
      'Still reviewing: Cleo.',
      'No order could be read in the review by Ada.',
      'No review came from Bea.',
    ]);
    expect(places.rows.every((row) => row.place === null)).toBe(true);
    const cut = table([...answers, review(ada, ['Bea', 'Cleo'], { status: 'interrupted' })])!;
    expect(cut.notes).toEqual(['Not finished, so not counted: the review by Ada.']);
  });

  it('leave out who gave no answer, and say so of who answered after the reviews', () => {
    const [a, b] = answers as [Message, Message];
    const failed = reply('Cleo', cleo, { status: 'failed', content: '' });
    const four = [a, b, failed, review(ada, ['Bea', 'x']), review(bea, ['Ada', 'x'])];
    expect(table(four)!.notes).toEqual(['Not ranked, because no answer came: Cleo.']);
    const late = reply('late', cleo, { replaces_id: 'Cleo' });
    expect(table([...four, late])!.notes).toEqual(['Not ranked in this version: Cleo.']);
  });

  it('show the place of an earlier version without counting it', () => {
    const newer = reply('Bea2', bea, { replaces_id: 'Bea' });
    const places = table([...answers, newer, review(ada, ['Bea', 'Cleo']), review(cleo, ['Ada', 'Bea'])])!;
    const row = places.rows.find((row) => row.voice.name === 'Bea')!;
    expect([row.mean, row.marks[0]]).toEqual([
      null,
      { kind: 'place', place: 1, isTied: false, isEarlier: true },
    ]);
  });

  it('are no table where each sees one answer alone, or nobody has begun', () => {
    const one = { read_replies: [{ message_id: 'Bea', seat: 2, name: 'Bea', label: 'Answer A' }] };
    expect(table([...answers.slice(0, 2), review(ada, null, one)])).toBeNull();
    expect(table(answers)).toBeNull();
  });
});
