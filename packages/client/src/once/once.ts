// `once(key, inputs, effect)`: runs an effect at most once for all callers of a mesh, and gives every later caller its
// result. It claims the key, renews the lease, and records the result. An unknown outcome is thrown as a named error
// and never guessed.

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

/** The ways in which a run ends without a result. An effect throws OnceNotDone itself. */
export { OnceEffectFailed, OnceLeaseLost, OnceNotDone, OnceNotRecorded, OnceRunning, OnceUncertain };

export type OnceContext = {
  readonly key: string;
  /** Grows with every permission to run; give it to systems that can refuse an older one. */
  readonly epoch: number;
  /** Aborted, with an OnceLeaseLost as its reason, when another caller may come to run the effect. */
  readonly signal: AbortSignal;
};

/** The value that an effect returns is its permanent result: plain JSON of at most 64 KiB. */
export type OnceEffect<T extends JsonValue> = (context: OnceContext) => T | Promise<T>;

export type OnceOptions = {
  /** How long the key stays with this process without a renewal; it is renewed while the effect runs. */
  readonly leaseSeconds?: number;
  /** Wait while another caller runs the effect (the default), or throw OnceRunning. */
  readonly wait?: boolean;
  /** Ends waiting and retrying. It does not end a running effect; the caller has to do that. */
  readonly signal?: AbortSignal;
  /** How long a claim is repeated that may have been carried out; one that never left is given up sooner. */
  readonly claimForMs?: number;
  /** How long to try to record a result while the broker does not answer. */
  readonly recordForMs?: number;
};

export type OnceSurroundings = {
  readonly call: BrokerCall;
  readonly clock?: OnceClock;
  readonly random?: () => number;
  /** Makes unique ids; each names one attempt. */
  readonly nextClaimId?: () => string;
};

export type OnceRun<T extends JsonValue> = {
  readonly result: T;
  readonly epoch: number;
  /** Whether this call ran the effect; otherwise the result existed already. */
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
/** Longer leases are left to people, who can resolve the key. */
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
type Lease = { readonly epoch: number; readonly sinceMs: number };

/** `fresh`: the lease counts from `sinceMs`. `ask_again`: it may have ended, so the key has to be claimed again. */
type Renewal = { readonly type: "fresh"; readonly sinceMs: number } | { readonly type: "ask_again" };

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

  /**
   * Repeats until the key is ours or done. An own claim whose lease ended before its answer came is taken back, because
   * nothing has run under it.
   */
  async #claim(): Promise<Lease | { readonly epoch: number; readonly result: unknown }> {
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
          const renewal = await this.#freshen(answer.epoch, sinceMs);
          if (renewal.type === "fresh") return { epoch: answer.epoch, sinceMs: renewal.sinceMs };
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

  /** A lease that began long ago, because its answer was lost, is renewed before an effect runs under it. */
  async #freshen(epoch: number, sinceMs: number): Promise<Renewal> {
    const { clock, call } = this.#ports;
    const leaseMs = this.#leaseSeconds * 1000;
    const askedAtMs = clock.monotonicMs();
    if (askedAtMs - sinceMs < leaseMs / 3) return { type: "fresh", sinceMs };
    try {
      await call("once.renew", { key: this.#wanted.key, epoch });
      return clock.monotonicMs() - askedAtMs < leaseMs ? { type: "fresh", sinceMs: askedAtMs } : { type: "ask_again" };
    } catch (error) {
      if (isTransient(error) || isUncertain(error)) return { type: "ask_again" };
      throw error;
    }
  }

  /** A caller that has begun to wait, or may hold the key without knowing it, goes on asking for longer. */
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

  /** The pause is shorter than the rest of the lease, because a result may come at any time before its end. */
  #pause(polls: number, leaseUntil: number): Promise<void> {
    const { clock, random } = this.#ports;
    const growing = Math.min(pollMs.first * 1.5 ** Math.min(polls, 20), pollMs.most) * (0.75 + random() / 2);
    const remaining = Math.max(leaseUntil - clock.wallMs(), pollMs.least);
    return clock.sleep(Math.min(growing, remaining), this.#wanted.signal);
  }

  /**
   * Reports that nothing was done in an own epoch. Any member may do so once the lease has ended, so this waits for
   * that. True when the key is free or another member has settled the epoch.
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

  /**
   * The lease is renewed while this is tried. A late record is accepted, because a result is worth more than a lease.
   */
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
