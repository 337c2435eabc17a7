import { describe, expect, it } from 'vitest';
import { ApiError } from '$lib/api/client';
import type { NewTurn } from '$lib/api/types';
import { Outbox, type NewOutgoing, type Outgoing } from './outbox';
import { voice } from '$lib/lanes/samples';
import { item } from './samples';

const OFFLINE = new ApiError(0, 'offline', 'No connection.');
const REFUSED = new ApiError(422, 'invalid', 'Too long.');

/** An outbox whose line can be cut, and what it sent. */
function setUp(kept: Outgoing[] = []) {
  const sent: NewTurn[] = [];
  const world = { answer: null as ApiError | null, items: [] as Outgoing[], kept };
  const outbox = new Outbox(
    async (turn) => {
      sent.push(turn);
      if (world.answer) throw world.answer;
    },
    { load: () => world.kept, keep: (items) => (world.kept = items) },
    (items) => (world.items = items),
  );
  const states = () => world.items.map((item) => item.state);
  return { outbox, sent, world, states };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('the outbox', () => {
  it('sends what it is given, and forgets it on the device once it is acknowledged', async () => {
    const { outbox, sent, world, states } = setUp();
    outbox.send(item('t1', { reply_to_id: 'r1' }));
    expect(states()).toEqual(['sending']);
    await settled();
    expect(sent[0]).toMatchObject({
      id: 't1',
      conversation_id: 'c1',
      voices: [{ model: 'house:Mind 1' }],
      reply_to_id: 'r1',
    });
    expect(states()).toEqual(['sent']);
    expect(world.kept).toEqual([]);
  });

  it('sends the ids of what is attached, and shows it before it is sent', async () => {
    const attachments = [{ id: 'a1', name: 'a.md' }] as NewOutgoing['attachments'];
    const { outbox, sent, world } = setUp();
    outbox.send(item('t1', { attachments }));
    expect(world.items[0]).toMatchObject({ attachments });
    await settled();
    expect(sent[0]).toMatchObject({ attachments: ['a1'] });
  });

  it('takes up what an older version kept', async () => {
    const { attachments: _, ...old } = item('t1');
    const { outbox, sent } = setUp([{ ...old, state: 'queued', reason: '' } as Outgoing]);
    outbox.resume();
    await settled();
    expect(sent.map((turn) => turn.id)).toEqual(['t1']);
  });

  it('keeps questions in order while there is no line, and sends them under the same ids when it is back', async () => {
    const { outbox, sent, world, states } = setUp();
    world.answer = OFFLINE;
    outbox.send(item('t1'));
    outbox.send(item('t2'));
    await settled();
    expect(states()).toEqual(['queued', 'sending']);
    expect(world.kept.map((each) => each.id)).toEqual(['t1', 't2']);
    world.answer = null;
    outbox.resume();
    await settled();
    expect(sent.map((turn) => turn.id)).toEqual(['t1', 't1', 't2']);
    expect(states()).toEqual(['sent', 'sent']);
  });

  it('goes on after the page was closed', async () => {
    const first = setUp();
    first.world.answer = OFFLINE;
    first.outbox.send(item('t1'));
    await settled();
    const second = setUp(first.world.kept);
    expect(second.states()).toEqual(['queued']);
    second.outbox.resume();
    await settled();
    expect(second.sent.map((turn) => turn.id)).toEqual(['t1']);
  });

  it('says why a question was refused, and holds back those after it until it is sent or taken back', async () => {
    const { outbox, sent, world, states } = setUp();
    world.answer = REFUSED;
    outbox.send(item('t1'));
    await settled();
    expect(world.items[0]).toMatchObject({ state: 'failed', reason: 'Too long.' });
    world.answer = null;
    outbox.send(item('t2'));
    outbox.send(item('t3', { conversation_id: 'c2' }));
    await settled();
    expect(sent.map((turn) => turn.id)).toEqual(['t1', 't3']);
    outbox.retry('t1');
    await settled();
    expect(states()).toEqual(['sent', 'sent', 'sent']);
  });

  it('names the lane of whoever is asked alone, so that the second of two is not taken for the first', async () => {
    const { outbox, sent } = setUp();
    const second = { ...voice(2, 'Alpha 2'), id: 'house:Alpha:1' };
    outbox.send(item('t1', { aside: true, table: [second] }));
    outbox.send(item('t2', { table: [second] }));
    await settled();
    expect(sent.map((turn) => turn.lanes)).toEqual([['house:Alpha:1'], undefined]);
  });

  it('lets a question be taken back', async () => {
    const { outbox, world } = setUp();
    world.answer = REFUSED;
    outbox.send(item('t1'));
    await settled();
    outbox.remove('t1');
    expect(world.items).toEqual([]);
    expect(world.kept).toEqual([]);
  });
});
