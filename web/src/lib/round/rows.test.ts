import { describe, expect, it } from 'vitest';
import type { Outgoing } from '$lib/composer/outbox';
import { item } from '$lib/composer/samples';
import { question, voice } from '$lib/lanes/samples';
import { rowsOf } from './rows';

describe('the rows of a conversation', () => {
  const known = { number: 4, messages: [question({ turn_id: 't1', round_number: 4 })] };
  const going: Outgoing = { ...item('t2'), state: 'queued', reason: '' };

  it('end with what is on its way, under the name it will keep', () => {
    const before = rowsOf([known], [], [going]);
    expect(before.map((row) => [row.name, row.round.number, row.pending?.state])).toEqual([
      ['t1', 4, undefined],
      ['t2', 5, 'queued'],
    ]);
    const arrived = { number: 5, messages: [question({ turn_id: 't2', round_number: 5 })] };
    const after = rowsOf([known, arrived], [], [going]);
    expect(after.map((row) => [row.name, row.pending])).toEqual([
      ['t1', undefined],
      ['t2', undefined],
    ]);
  });

  it('show the table hollow before anyone has answered', () => {
    const [row] = rowsOf([], [], [going]);
    expect(row!.turns[0]).toMatchObject({ id: 't2', state: 'queued', table: [voice(1)] });
    expect(row!.round.messages[0]).toMatchObject({ content: 'text of t2', role: 'user' });
  });

  it('show what is attached before the message is sent', () => {
    const attachments = [{ id: 'a1', name: 'a.md' }] as Outgoing['attachments'];
    const [row] = rowsOf([], [], [{ ...going, attachments }]);
    expect(row!.round.messages[0]).toMatchObject({ attachments });
  });
});
