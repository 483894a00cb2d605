// The registrar as one broker runs it: opened only over tables that prove single use, with what a crash left unverified
// finished before the first request, and tidied up after from time to time. Its rules are in packages/registrar.
import { accessSync, constants } from "node:fs";
import type { RegistrarStore } from "@claudemesh/registrar/ports";
import { createExecVerifier } from "@claudemesh/registrar/services/exec-verifier";
import { finishVerifications } from "@claudemesh/registrar/services/finish-verifications";
import type { RegisterPorts } from "@claudemesh/registrar/services/register";
import { RetryCounter, type RetryCounterOptions } from "@claudemesh/registrar/services/retry-counter";
import { createSignatureCheck, type SignatureCheck } from "@claudemesh/registrar/services/signature-check";
import { surfaceRefusal } from "@claudemesh/registrar/services/surface-refusal";
import type { Verifier } from "@claudemesh/registrar/services/verify-registration";
import { proveSurface, type SurfaceProof } from "@claudemesh/registrar/surface";
import type { Logger } from "pino";
import { type BrokerConfig, BrokerConfigError } from "../config.ts";
import type { BrokerMetrics } from "../metrics.ts";

/** Everything that a call needs, or the refusal that all calls get. */
export type BrokerRegistrar = {
  readonly use: () => OpenRegistrar;
  /** True: there is more to do. */
  readonly tidyUp: () => Promise<boolean>;
  /** Keys of registrations that failed their verification and were not made good. */
  readonly failedVerifications: (meshId: string, limit: number) => Promise<readonly string[]>;
  /** Writes down what was counted. */
  readonly close: () => Promise<void>;
};

export type OpenRegistrar = Omit<RegisterPorts, "store" | "retries"> & {
  readonly randomBytes?: (length: number) => Uint8Array;
  readonly store: RegistrarStore;
  readonly retries: RetryCounter;
};

type Surroundings = {
  readonly store: RegistrarStore;
  readonly config: Pick<BrokerConfig, "registrarVerifier">;
  readonly nowMs: () => number;
  readonly nextId: () => string;
  readonly metrics: BrokerMetrics;
  readonly log: Logger;
  /** Where time, chance and the program that verifies come from; Node and the configuration unless given. */
  readonly sources?: RegistrarSources;
};

export type RegistrarSources = {
  readonly monotonicMs: () => number;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly setTimer: NonNullable<RetryCounterOptions["setTimer"]>;
  readonly verifier: Verifier;
  readonly verifySignature: SignatureCheck;
};

/** A start waits so long for what a crash left unverified; the rest is finished beside the first requests. */
const finishAtStartMs = 5_000;
/** How far back a look goes behind the one before: longer than any verification takes, on any broker. */
const recentMs = 3_600_000;
/** A request verifies its own registration; only what is older was left behind. */
const ownTimeMs = 30_000;
const summariesPerStep = 500;

export async function openRegistrar(surroundings: Surroundings): Promise<BrokerRegistrar> {
  const { store, metrics, log, sources } = surroundings;
  const verifier = sources?.verifier ?? openVerifier(surroundings.config.registrarVerifier);
  const monotonicMs = sources?.monotonicMs ?? (() => performance.now());
  const proof = proveSurface(await store.inspect());
  metrics.registrarOpen(proof.fit);
  for (const note of proof.notes) log.info({ event: "registrar_note" }, note);
  if (!proof.fit) return closedRegistrar(proof, store, log);
  const ports = openPorts(surroundings, verifier);
  const startedAtMs = monotonicMs();
  const inTime = () => monotonicMs() - startedAtMs < finishAtStartMs;
  const { finished, oldestLeftMs } = await finishVerifications(ports, "all", inTime);
  if (finished > 0)
    log.warn({ event: "registrar_finished", finished }, "registrations left unverified are verified now");
  /** Every registration before this time has a verdict. Undefined before all have been read once. Open ones hold it back. */
  let reachedMs = inTime() ? Math.min(ports.nowMs(), oldestLeftMs ?? ports.nowMs()) : undefined;
  return {
    use: () => ports,
    tidyUp: async () => {
      const nowMs = ports.nowMs();
      const scope = reachedMs === undefined ? "all" : { registeredSinceMs: Math.min(reachedMs, nowMs) - recentMs };
      // What was registered in the future is from before the clock was set back, and its request has long ended.
      const isUnderWay = (atMs: number) => atMs > nowMs - ownTimeMs && atMs <= nowMs;
      const looked = await finishVerifications(ports, scope, undefined, isUnderWay);
      reachedMs = Math.min(nowMs, looked.oldestLeftMs ?? nowMs);
      return (await store.audit.summarise(nowMs, summariesPerStep, ports.nextId)) === summariesPerStep;
    },
    failedVerifications: store.requests.failed,
    close: () => ports.retries.flush(),
  };
}

function closedRegistrar(proof: SurfaceProof, store: RegistrarStore, log: Logger): BrokerRegistrar {
  const refusal = surfaceRefusal(proof);
  log.error({ event: "registrar_closed", missing: refusal.details.missing }, refusal.message);
  return {
    use: () => {
      throw surfaceRefusal(proof);
    },
    tidyUp: async () => false,
    failedVerifications: store.requests.failed,
    close: async () => undefined,
  };
}

function openVerifier(path: string | undefined): Verifier | undefined {
  if (path === undefined) return undefined;
  try {
    accessSync(path, constants.X_OK);
  } catch {
    throw new BrokerConfigError(`--registrar-verifier names ${path}, which is no program that can be run.`);
  }
  return createExecVerifier(path);
}

function openPorts(
  { store, nowMs, nextId, metrics, log, sources }: Surroundings,
  verifier: Verifier | undefined,
): OpenRegistrar {
  const onProblem = (event: string, message: string) => (error: unknown) => log.error({ event, err: error }, message);
  return {
    store,
    nowMs,
    nextId,
    verifier,
    isSignedBy: createSignatureCheck(sources?.verifySignature),
    ...(sources && { randomBytes: sources.randomBytes }),
    retries: new RetryCounter({
      store: store.attempts,
      ...(sources && { setTimer: sources.setTimer }),
      onFailure: onProblem("registrar_retries_lost", "counting retries failed"),
    }),
    onVerified: (result, reason) => {
      metrics.registrarVerified(result);
      if (result !== "registered_closed") {
        log.warn({ event: "registrar_verification", result, reason }, "a registration was not verified");
      }
    },
    onUnfinished: onProblem("registrar_unfinished", "a registration is not verified yet"),
  };
}
