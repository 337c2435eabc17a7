import { beforeEach, describe, expect, it } from 'vitest';
import { backOff, Connection, type ConnectionState, type World } from './connection';
import type { Item, Topic } from './items';

/** A socket whose other end is the test. */
class Line {
  readyState = 0;
  sent: unknown[] = [];
  onopen?: () => void;
  onmessage?: (event: { data: string }) => void;
  onclose?: (event: { code: number }) => void;

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  close(): void {
    this.readyState = 3;
  }
  answer(): void {
    this.readyState = 1;
    this.onopen?.();
  }
  say(items: Item[]): void {
    this.onmessage?.({ data: JSON.stringify(items) });
  }
  drop(code = 1006): void {
    this.readyState = 3;
    this.onclose?.({ code });
  }
}

class Clock {
  at = 1_000_000;
  #planned: { at: number; run: () => void }[] = [];

  after(ms: number, run: () => void): () => void {
    const entry = { at: this.at + ms, run };
    this.#planned.push(entry);
    return () => (this.#planned = this.#planned.filter((each) => each !== entry));
  }
  pass(ms: number): void {
    this.at += ms;
    const due = this.#planned.filter((each) => each.at <= this.at);
    this.#planned = this.#planned.filter((each) => each.at > this.at);
    for (const each of due) each.run();
  }
}

describe('the line to the server', () => {
  let lines: Line[];
  let clock: Clock;
  let isOnline: boolean;
  let states: ConnectionState[];
  let received: Item[];
  let places: [Topic, number][];
  let refusals: number;
  let connection: Connection;

  const last = () => lines.at(-1)!;
  const state = () => states.at(-1)!.state;

  beforeEach(() => {
    lines = [];
    clock = new Clock();
    isOnline = true;
    states = [];
    received = [];
    refusals = 0;
    places = [['user:U', 3]];
    const world: World = {
      open: () => {
        lines.push(new Line());
        return last() as unknown as WebSocket;
      },
      now: () => clock.at,
      random: () => 0.5,
      isOnline: () => isOnline,
      after: (ms, run) => clock.after(ms, run),
    };
    connection = new Connection(
      {
        receive: (items) => received.push(...items),
        changed: (each) => states.push(each),
        refused: () => refusals++,
        places: () => places,
      },
      world,
    );
    connection.start();
  });

  it('follows every place from where it was read, each time it opens', () => {
    last().answer();
    expect(last().sent).toEqual([{ type: 'follow', place: 'user:U', after: 3 }]);
    places = [
      ['user:U', 5],
      ['conversation:C', 9],
    ];
    last().drop();
    clock.pass(1000);
    last().answer();
    expect(last().sent).toEqual([
      { type: 'follow', place: 'user:U', after: 5 },
      { type: 'follow', place: 'conversation:C', after: 9 },
    ]);
    expect(lines).toHaveLength(2);
  });

  it('counts down after a drop and waits longer each time', () => {
    last().answer();
    const waits: number[] = [];
    for (let n = 0; n < 4; n++) {
      last().drop();
      const now = states.at(-1)!;
      expect(now.state).toBe('waiting');
      waits.push(now.retryAt! - clock.at);
      clock.pass(waits.at(-1)!);
    }
    expect(waits).toEqual([500, 1000, 2000, 4000]);
  });

  it('starts counting anew once the server has spoken', () => {
    last().drop();
    clock.pass(500);
    last().answer();
    last().say([]);
    last().drop();
    expect(states.at(-1)!.retryAt! - clock.at).toBe(500);
  });

  it('takes forty seconds of silence for a dead line', () => {
    last().answer();
    clock.pass(30_000);
    last().say([]);
    clock.pass(30_000);
    expect(state()).toBe('open');
    clock.pass(10_000);
    expect(state()).toBe('waiting');
    expect(last().readyState).toBe(3);
  });

  it('rests while the browser is offline and comes back when asked', () => {
    last().answer();
    isOnline = false;
    connection.wentOffline();
    expect(state()).toBe('offline');
    clock.pass(600_000);
    expect(lines).toHaveLength(1);
    isOnline = true;
    connection.retryNow();
    last().answer();
    expect(state()).toBe('open');
  });

  it('does not wait for the countdown when someone says so', () => {
    last().drop();
    connection.retryNow();
    expect(lines).toHaveLength(2);
    clock.pass(60_000);
    expect(lines.length).toBeLessThanOrEqual(3); // the watch on a silent line, and no leftover countdown
  });

  it('says that the session ended, and does not knock again', () => {
    last().answer();
    last().drop(4401);
    expect(received).toEqual([{ type: 'signed_out' }]);
    clock.pass(600_000);
    expect(lines).toHaveLength(1);
  });

  it('tells a door that stayed shut from a line that dropped', () => {
    last().drop();
    expect(refusals).toBe(1);
    clock.pass(500);
    last().answer();
    last().drop();
    expect(refusals).toBe(1);
  });

  it('hands on what it hears, but not the heartbeat', () => {
    last().answer();
    last().say([]);
    last().say([{ type: 'pong' }]);
    expect(received).toEqual([{ type: 'pong' }]);
  });

  it('ignores a line it has given up', () => {
    last().answer();
    connection.stop();
    lines[0]!.drop();
    expect(states.at(-1)!.state).toBe('open');
    clock.pass(600_000);
    expect(lines).toHaveLength(1);
  });
});

describe('the wait before the next attempt', () => {
  it('never exceeds half a minute, give or take a quarter', () => {
    for (let attempts = 0; attempts < 40; attempts++)
      for (const random of [0, 0.5, 0.999]) {
        expect(backOff(attempts, random)).toBeLessThanOrEqual(37_500);
        expect(backOff(attempts, random)).toBeGreaterThanOrEqual(375);
      }
  });
});
