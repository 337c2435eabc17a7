/**
 * The one WebSocket of this tab: follows places, hands frames on, and comes back by itself when the line drops.
 *
 * connecting ─▶ open ─▶ waiting (a moment, longer each time) ─▶ connecting
 *                  └──▶ offline (the browser says there is no network) ─▶ connecting when it is back
 */
import type { Item, Topic } from './items';

export type ConnectionState =
  { state: 'connecting' | 'open' | 'offline'; retryAt: null } | { state: 'waiting'; retryAt: number };

/** The connection's dependencies: socket, clock, chance, network state; tests hand in their own. */
export interface World {
  open(): WebSocket;
  now(): number;
  random(): number;
  isOnline(): boolean;
  after(ms: number, run: () => void): () => void;
}

export interface Listener {
  /** Receives the items of a frame, in order. */
  receive(items: Item[]): void;
  changed(state: ConnectionState): void;
  /** The server refused the connection; the browser does not tell why. */
  refused(): void;
  /** Returns the topics to follow once the connection is open (again), each with the cursor reached. */
  places(): Iterable<[Topic, number]>;
}

/** The server says something at least every 15 s. */
const SILENCE_MS = 40_000;
const SIGNED_OUT = 4401;
const OPEN = 1;

export class Connection {
  #socket: WebSocket | null = null;
  #attempts = 0;
  #cancelRetry = () => {};
  #cancelWatch = () => {};
  #isWanted = false;
  #wasOpen = false;

  constructor(
    private readonly listener: Listener,
    private readonly world: World,
  ) {}

  start(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#attempts = 0;
    this.#connect();
  }

  stop(): void {
    this.#isWanted = false;
    this.#hangUp();
  }

  follow(place: Topic, after: number): void {
    this.#send({ type: 'follow', place, after });
  }

  leave(place: Topic): void {
    this.#send({ type: 'leave', place });
  }

  /** Retries now, without waiting for the countdown: a person asked, or the network is back. */
  retryNow(): void {
    if (!this.#isWanted || this.#socket) return;
    this.#connect();
  }

  /** The browser lost its network: the socket may take minutes to notice. */
  wentOffline(): void {
    if (!this.#isWanted) return;
    this.#hangUp();
    this.listener.changed({ state: 'offline', retryAt: null });
  }

  #connect(): void {
    this.#hangUp();
    if (!this.world.isOnline()) return this.listener.changed({ state: 'offline', retryAt: null });
    this.listener.changed({ state: 'connecting', retryAt: null });
    const socket = this.world.open();
    this.#socket = socket;
    this.#wasOpen = false;
    this.#watch();
    socket.onopen = () => this.#opened();
    socket.onmessage = (event) => this.#received(String(event.data));
    socket.onclose = (event) => this.#closed(socket, event.code);
  }

  #opened(): void {
    this.#wasOpen = true;
    for (const [place, after] of this.listener.places()) this.follow(place, after);
    this.listener.changed({ state: 'open', retryAt: null });
  }

  #received(text: string): void {
    this.#attempts = 0;
    this.#watch();
    const items = JSON.parse(text) as Item[];
    if (items.length) this.listener.receive(items);
  }

  #closed(socket: WebSocket, code: number): void {
    if (socket !== this.#socket) return;
    if (!this.#wasOpen) this.listener.refused();
    this.#hangUp();
    if (code === SIGNED_OUT) {
      this.#isWanted = false;
      this.listener.receive([{ type: 'signed_out' }]);
    } else if (this.#isWanted) this.#retryLater();
  }

  #retryLater(): void {
    if (!this.world.isOnline()) return this.listener.changed({ state: 'offline', retryAt: null });
    const wait = backOff(this.#attempts++, this.world.random());
    this.listener.changed({ state: 'waiting', retryAt: this.world.now() + wait });
    this.#cancelRetry = this.world.after(wait, () => this.#connect());
  }

  /** A line that is silent for too long is dead, whatever it says. */
  #watch(): void {
    this.#cancelWatch();
    this.#cancelWatch = this.world.after(SILENCE_MS, () => {
      this.#hangUp();
      this.#retryLater();
    });
  }

  #hangUp(): void {
    this.#cancelRetry();
    this.#cancelWatch();
    const socket = this.#socket;
    this.#socket = null;
    if (socket && socket.readyState <= OPEN) socket.close();
  }

  #send(message: object): void {
    if (this.#socket?.readyState === OPEN) this.#socket.send(JSON.stringify(message));
  }
}

/** 0.5 s at first, doubling to 30 s, give or take a quarter, so that a thousand tabs do not knock at once. */
export function backOff(attempts: number, random: number): number {
  return Math.min(30_000, 500 * 2 ** attempts) * (0.75 + random / 2);
}

export function browserWorld(address: string): World {
  return {
    open: () => new WebSocket(address),
    now: () => Date.now(),
    random: () => Math.random(),
    isOnline: () => navigator.onLine,
    after(ms, run) {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
  };
}
