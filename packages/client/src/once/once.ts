// `once(key, inputs, effect)`: runs an effect at most once for all callers of a mesh, and gives every later caller what
// came of it. Claims, keeps the lease, records; what nobody can know is thrown as a named error and never guessed.

import { randomBytes } from "node:crypto";
import { createUlidGenerator } from "@claudemesh/protocol/ids";
import type { JsonValue } from "@claudemesh/protocol/json";
import { onceLimits } from "@claudemesh/protocol/registrar/once-limits";
import { onceInputsFingerprint, onceResultText } from "@claudemesh/protocol/registrar/once-values";
import type { BrokerCall } from "../broker/broker-client.ts";
import { nodeSha256 } from "../keys/node-sha256.ts";
import { askForClaim, isTransient, mayBeCarriedOut, type OnceRetrying, retryFor } from "./once-calls.ts";
import { type OnceClock, systemOnceClock } from "./once-clock.ts";
import {
  OnceEffectFailed,
  OnceLeaseLost,
  OnceNotDone,
  OnceNotRecorded,
  OnceRunning,
  OnceUncertain,
} from "./once-failures.ts";
import { keepLease } from "./once-lease.ts";

export type OnceContext = {
  readonly key: string;
  /** Grows with every permission to run; give it to what can refuse an older one. */
  readonly epoch: number;
  /** Aborted, with a OnceLeaseLost as its reason, when others may come to run the effect. */
  readonly signal: AbortSignal;
};

/** What an effect returns is its result, for ever: plain JSON of at most 64 KiB. */
export type OnceEffect<T extends JsonValue> = (context: OnceContext) => T | Promise<T>;

export type OnceOptions = {
  /** How long the key stays this process's without a word from it; renewed while the effect runs. */
  readonly leaseSeconds?: number;
  /** Wait while somebody else runs the effect (the default), or throw OnceRunning. */
  readonly wait?: boolean;
  /** Ends waiting and retrying; an effect under way is its own caller's to end. */
  readonly signal?: AbortSignal;
  /** How long a claim that may have been carried out is asked for again; one that never left is given up sooner. */
  readonly claimForMs?: number;
  /** How long a result is tried to be recorded while the broker does not answer. */
  readonly recordForMs?: number;
};

export type OnceSurroundings = {
  readonly call: BrokerCall;
  readonly clock?: OnceClock;
  readonly random?: () => number;
  /** Ids that nobody else makes; each names one attempt. */
  readonly nextClaimId?: () => string;
};

export type OnceRun<T extends JsonValue> = {
  readonly result: T;
  readonly epoch: number;
  /** Whether this call ran the effect; else its result was there. */
  readonly ran: boolean;
};

export type Once = {
  readonly once: <T extends JsonValue>(
    key: string,
    inputs: JsonValue,
    effect: OnceEffect<T>,
    options?: OnceOptions,
  ) => Promise<T>;
  /** The same, and how the result came about. */
  readonly run: <T extends JsonValue>(
    key: string,
    inputs: JsonValue,
    effect: OnceEffect<T>,
    options?: OnceOptions,
  ) => Promise<OnceRun<T>>;
};

const claimForMsDefault = 60_000;
const unreachableForMs = 3_000;
/** Leases that last longer are left to people who know how to resolve. */
const takeBackForMs = 120_000;
const recordForMsDefault = 600_000;
const pollMs = { first: 200, most: 2_000, least: 50 };

export function createOnce(surroundings: OnceSurroundings): Once {
  const clock = surroundings.clock ?? systemOnceClock;
  const run: Once["run"] = (key, inputs, effect, options = {}) => {
    const attempt = new Attempt(
      {
        call: surroundings.call,
        clock,
        random: surroundings.random ?? Math.random,
        nextClaimId: surroundings.nextClaimId ?? createUlidGenerator({ nowMs: clock.wallMs, randomBytes }),
      },
      { key, fingerprint: onceInputsFingerprint(nodeSha256, inputs), ...options },
    );
    return attempt.run(effect);
  };
  return { run, once: async (key, inputs, effect, options) => (await run(key, inputs, effect, options)).result };
}

type Ports = Required<OnceSurroundings>;
type Wanted = OnceOptions & { readonly key: string; readonly fingerprint: string };
type Held = { readonly epoch: number; readonly sinceMs: number };

/** One call of `once`, from its claim to its record. */
class Attempt {
  readonly #ports: Ports;
  readonly #wanted: Wanted;
  readonly #leaseSeconds: number;

  constructor(ports: Ports, wanted: Wanted) {
    this.#ports = ports;
    this.#wanted = wanted;
    this.#leaseSeconds = wanted.leaseSeconds ?? onceLimits.leaseSecondsDefault;
  }

  get #retrying(): OnceRetrying {
    return this.#ports;
  }

  async run<T extends JsonValue>(effect: OnceEffect<T>): Promise<OnceRun<T>> {
    const claimed = await this.#claim();
    if ("result" in claimed) return { result: claimed.result as T, epoch: claimed.epoch, ran: false };
    const { key } = this.#wanted;
    const at = { key, epoch: claimed.epoch };
    const lease = keepLease({
      ...this.#retrying,
      leaseMs: this.#leaseSeconds * 1000,
      sinceMs: claimed.sinceMs,
      renew: () => this.#ports.call("once.renew", at),
      isTransient,
      lost: (cause) => new OnceLeaseLost(cause === undefined || isUncertain(cause) ? "expired" : "settled", at, cause),
    });
    try {
      // An effect that returns nothing has null as its result.
      const result = ((await effect({ ...at, signal: lease.signal })) ?? null) as T;
      await this.#record(at, result);
      return { result, epoch: claimed.epoch, ran: true };
    } catch (error) {
      lease.stop();
      if (error instanceof OnceNotRecorded) throw error;
      if (error instanceof OnceNotDone && (await this.#takeBack(claimed.epoch))) throw error;
      throw new OnceEffectFailed(at, error);
    } finally {
      lease.stop();
    }
  }

  /** Until the key is ours or done. An own claim whose answer never came in time is taken back: nothing has run. */
  async #claim(): Promise<Held | { readonly epoch: number; readonly result: unknown }> {
    const { clock } = this.#ports;
    const { key, signal } = this.#wanted;
    let claimId = this.#ports.nextClaimId();
    for (let polls = 0; ; polls++) {
      signal?.throwIfAborted();
      const sinceMs = clock.monotonicMs();
      const answer = await this.#askForClaim(claimId, polls > 0);
      switch (answer.type) {
        case "done":
          return { epoch: answer.epoch, result: answer.result };
        case "held": {
          const freshSinceMs = await this.#freshen(answer.epoch, sinceMs);
          if (freshSinceMs !== undefined) return { epoch: answer.epoch, sinceMs: freshSinceMs };
          break;
        }
        case "running":
          if (this.#wanted.wait === false) throw new OnceRunning({ key, ...answer });
          await this.#pause(polls, answer.leaseUntil);
          break;
        case "uncertain":
          if (answer.claimId !== claimId) throw new OnceUncertain({ key, epoch: answer.epoch });
          if (!(await this.#takeBack(answer.epoch))) throw new OnceUncertain({ key, epoch: answer.epoch });
          claimId = this.#ports.nextClaimId();
          break;
        case "resolved_away":
          claimId = this.#ports.nextClaimId();
      }
    }
  }

  /**
   * A lease that began long ago, because its answer got lost, is renewed before anything runs on it: since when it
   * counts, or undefined where the key has to be asked for again.
   */
  async #freshen(epoch: number, sinceMs: number): Promise<number | undefined> {
    const { clock, call } = this.#ports;
    const leaseMs = this.#leaseSeconds * 1000;
    const askedAtMs = clock.monotonicMs();
    if (askedAtMs - sinceMs < leaseMs / 3) return sinceMs;
    try {
      await call("once.renew", { key: this.#wanted.key, epoch });
      return clock.monotonicMs() - askedAtMs < leaseMs ? askedAtMs : undefined;
    } catch (error) {
      if (isTransient(error) || isUncertain(error)) return undefined;
      throw error;
    }
  }

  /** Who has begun to wait, or may hold the key without knowing it, is patient. */
  #askForClaim(claimId: string, waiting: boolean) {
    const { key, fingerprint, signal, claimForMs = claimForMsDefault } = this.#wanted;
    const request = { key, claim_id: claimId, inputs_fingerprint: fingerprint, lease_s: this.#leaseSeconds };
    let patient = waiting;
    const forMs = (error: unknown) => {
      patient ||= mayBeCarriedOut(error);
      return patient ? claimForMs : Math.min(claimForMs, unreachableForMs);
    };
    return retryFor(this.#retrying, forMs, () => askForClaim(this.#ports.call, request), signal);
  }

  /** Shortly before the lease ends there is nothing to ask; a result may come at any time before. */
  #pause(polls: number, leaseUntil: number): Promise<void> {
    const { clock, random } = this.#ports;
    const growing = Math.min(pollMs.first * 1.5 ** Math.min(polls, 20), pollMs.most) * (0.75 + random() / 2);
    const left = Math.max(leaseUntil - clock.wallMs(), pollMs.least);
    return clock.sleep(Math.min(growing, left), this.#wanted.signal);
  }

  /**
   * Says of an own epoch that nothing was done, as anybody may once its lease has ended; so it waits for that. True
   * when the key is free or somebody else has settled it.
   */
  async #takeBack(epoch: number): Promise<boolean> {
    const { clock, call } = this.#ports;
    const { key, claimForMs = claimForMsDefault } = this.#wanted;
    const resolve = () => call("once.resolve", { key, epoch, outcome: "not_done" });
    const endsAtMs = clock.monotonicMs() + takeBackForMs;
    while (clock.monotonicMs() < endsAtMs) {
      try {
        await retryFor(this.#retrying, claimForMs, resolve);
        return true;
      } catch (error) {
        if (codeOf(error) === "epoch_settled") return true;
        if (codeOf(error) !== "running") return false;
      }
      await clock.sleep(pollMs.most);
    }
    return false;
  }

  /** The lease is kept while this is tried, and a result is worth more than a lease: late records count. */
  async #record(at: { readonly key: string; readonly epoch: number }, result: JsonValue): Promise<void> {
    const { recordForMs = recordForMsDefault } = this.#wanted;
    try {
      onceResultText(result);
      await retryFor(this.#retrying, recordForMs, () => this.#ports.call("once.record", { ...at, result }));
    } catch (error) {
      throw new OnceNotRecorded(at, result, error);
    }
  }
}

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;
}

function isUncertain(error: unknown): boolean {
  return codeOf(error) === "uncertain";
}
