// A machine with its clocks, and the lives of the process on it. A life that has ended gets no turn, no timer and no
// frame any more: whatever it was waiting for never comes, which is what death at an await means.
import type { Chance, Timer } from "@claudemesh/daemon/testing/ports";
import type { TimeSources } from "@claudemesh/daemon/testing/system-clock";
import { bytesFrom, type Random, streamOf } from "../core/chance.ts";
import type { EventLog } from "./event-log.ts";
import type { Owner, Scheduler } from "./scheduler.ts";

/** Where simulated time begins on a clock that is right. */
const beginningMs = 1_800_000_000_000;

export type Surroundings = {
  readonly scheduler: Scheduler;
  readonly log: EventLog;
  readonly seed: number;
  /** How long all processes have slept between rounds, all in all. */
  readonly leaptMs: () => number;
  /** Something failed in a way that nothing here makes happen. */
  readonly onBug: (error: unknown) => void;
};

export class Host {
  readonly name: string;
  readonly surroundings: Surroundings;
  readonly random: Random;
  wakesAtMs = 0;
  #skewMs: number;
  /** The furthest ahead that its clock has ever been. */
  furthestMs: number;
  #sleptMs = 0;
  #lives = 0;
  #life: Life | undefined;

  constructor(name: string, surroundings: Surroundings, skewMs: number) {
    this.name = name;
    this.surroundings = surroundings;
    this.#skewMs = skewMs;
    this.furthestMs = skewMs;
    this.random = streamOf(surroundings.seed, `host ${name}`);
  }

  /** How far its wall clock is off. */
  get skewMs(): number {
    return this.#skewMs;
  }

  step(byMs: number): void {
    this.#skewMs += byMs;
    this.furthestMs = Math.max(this.furthestMs, this.#skewMs);
  }

  get life(): Life | undefined {
    return this.#life;
  }

  readonly wallMs = (): number =>
    Math.floor(beginningMs + this.surroundings.scheduler.nowMs + this.surroundings.leaptMs() + this.#skewMs);

  /** For a daemon's own clock, which counts sleep only when it looks. */
  timeSources(life: Life): TimeSources {
    const { scheduler, leaptMs } = this.surroundings;
    return {
      wallMs: this.wallMs,
      monotonicMs: () => scheduler.nowMs - this.#sleptMs,
      uptimeSeconds: () => (scheduler.nowMs + leaptMs()) / 1000,
      setTimer: (delayMs, callback) => life.setTimer(delayMs, callback),
    };
  }

  sleep(forMs: number): void {
    const nowMs = this.surroundings.scheduler.nowMs;
    const fromMs = Math.max(nowMs, this.wakesAtMs);
    this.wakesAtMs = Math.max(this.wakesAtMs, nowMs + forMs);
    this.#sleptMs += this.wakesAtMs - fromMs;
    this.note(`sleeps until ${this.wakesAtMs.toFixed(0)}`);
  }

  begin(): Life {
    this.#life?.end();
    this.#life = new Life(this, ++this.#lives);
    this.note(`begins life ${this.#lives}`);
    return this.#life;
  }

  note(what: string): void {
    this.surroundings.log.add(this.surroundings.scheduler.nowMs, `${this.name}: ${what}`);
  }
}

export class Life implements Owner {
  readonly host: Host;
  readonly number: number;
  readonly chance: Chance;
  readonly #ending: (() => void)[] = [];
  alive = true;

  constructor(host: Host, number: number) {
    this.host = host;
    this.number = number;
    const { random } = host;
    this.chance = { random: random.next, randomBytes: bytesFrom(random), nextTurn: this.nextTurn };
  }

  get wakesAtMs(): number {
    return this.host.wakesAtMs;
  }

  /** Mostly at once; now and then others get in between. */
  readonly nextTurn = (run: () => void): void => {
    const { random } = this.host;
    const delayMs = random.next() < 0.05 ? random.next() * 40 : random.next() * 0.5;
    this.host.surroundings.scheduler.after(delayMs, run, this);
  };

  /** A turn at least: nothing that is set runs at once. */
  setTimer(delayMs: number, callback: () => void): Timer {
    return this.host.surroundings.scheduler.after(Math.max(delayMs, 0.01), callback, this);
  }

  /** Calls the listener once nothing comes from here any more. */
  onEnd(tell: () => void): void {
    this.#ending.push(tell);
  }

  end(): void {
    if (!this.alive) return;
    this.alive = false;
    this.host.note(`life ${this.number} ends`);
    for (const tell of this.#ending) tell();
  }
}
