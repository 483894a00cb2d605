// The registrar as one broker runs it: opened only over tables that prove single use, with what a crash left unverified
// finished before the first request, and tidied up after from time to time. Its rules are in packages/registrar.
import { accessSync, constants } from "node:fs";
import type { RegistrarStore } from "@claudemesh/registrar/ports";
import { createExecVerifier } from "@claudemesh/registrar/services/exec-verifier";
import { finishVerifications } from "@claudemesh/registrar/services/finish-verifications";
import type { RegisterPorts } from "@claudemesh/registrar/services/register";
import { RetryCounter } from "@claudemesh/registrar/services/retry-counter";
import { createSignatureCheck } from "@claudemesh/registrar/services/signature-check";
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
  /** Writes down what was counted. */
  readonly close: () => Promise<void>;
};

export type OpenRegistrar = Omit<RegisterPorts, "store" | "retries"> & {
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
};

/** A start waits so long for what a crash left unverified; the rest is finished beside the first requests. */
const finishAtStartMs = 5_000;
/** How far back later looks go: longer than any verification takes, on any broker. */
const recentMs = 3_600_000;
/** A request verifies its own registration; only what is older was left behind. */
const ownTimeMs = 30_000;
const summariesPerStep = 500;

export async function openRegistrar(surroundings: Surroundings): Promise<BrokerRegistrar> {
  const { store, metrics, log } = surroundings;
  const verifier = openVerifier(surroundings.config.registrarVerifier);
  const proof = proveSurface(await store.inspect());
  metrics.registrarOpen(proof.fit);
  for (const note of proof.notes) log.info({ event: "registrar_note" }, note);
  if (!proof.fit) return closedRegistrar(proof, log);
  const ports = openPorts(surroundings, verifier);
  const startedAtMs = performance.now();
  const inTime = () => performance.now() - startedAtMs < finishAtStartMs;
  const finished = await finishVerifications(ports, "all", inTime);
  if (finished > 0)
    log.warn({ event: "registrar_finished", finished }, "registrations left unverified are verified now");
  let everythingSeen = inTime();
  return {
    use: () => ports,
    tidyUp: async () => {
      const nowMs = ports.nowMs();
      const scope = everythingSeen ? { registeredSinceMs: nowMs - recentMs } : "all";
      await finishVerifications(ports, scope, undefined, nowMs - ownTimeMs);
      everythingSeen = true;
      return (await store.audit.summarise(nowMs, summariesPerStep, ports.nextId)) === summariesPerStep;
    },
    close: () => ports.retries.flush(),
  };
}

function closedRegistrar(proof: SurfaceProof, log: Logger): BrokerRegistrar {
  const refusal = surfaceRefusal(proof);
  log.error({ event: "registrar_closed", missing: refusal.details.missing }, refusal.message);
  return {
    use: () => {
      throw surfaceRefusal(proof);
    },
    tidyUp: async () => false,
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
  { store, nowMs, nextId, metrics, log }: Surroundings,
  verifier: Verifier | undefined,
): OpenRegistrar {
  const onProblem = (event: string, message: string) => (error: unknown) => log.error({ event, err: error }, message);
  return {
    store,
    nowMs,
    nextId,
    verifier,
    isSignedBy: createSignatureCheck(),
    retries: new RetryCounter({
      store: store.attempts,
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
