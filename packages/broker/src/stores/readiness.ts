// Whether this broker can do its work: write to its store and to its limiter, which a read or a ping does not show. Any caller
// may ask, so that asking is cheap: one proof serves all who ask within a second.
import { type ErrorCode, MeshError } from "@claudemesh/protocol/errors";
import { StorageError } from "@claudemesh/storage/errors";
import { answerInTime } from "./answer-in-time.ts";

export type Readiness = {
  readonly store: "ok" | "unavailable";
  /** `uncounted`: it is away, and new sends pass without it (`--limiter-open`). */
  readonly limiter: "ok" | "unavailable" | "uncounted";
  /** Why requests would be refused now; undefined: they would not. */
  readonly refusal: MeshError | undefined;
};

export type ReadinessPorts = {
  /** Rejects unless the store has taken a write, and has room for another accept. */
  readonly writeStore: () => Promise<void>;
  /** True once the limiter has taken a write. */
  readonly writeLimiter: () => Promise<boolean>;
  readonly limiterOpen: boolean;
  readonly onFailure: (error: unknown) => void;
  readonly monotonicMs?: () => number;
};

const keptMs = 1_000;

export function createReadiness(ports: ReadinessPorts): () => Promise<Readiness> {
  const { monotonicMs = () => performance.now() } = ports;
  let proof: Promise<Readiness> | undefined;
  let provenAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (proof !== undefined && monotonicMs() - provenAtMs < keptMs) return proof;
    // Until it has ended it counts as fresh: a store that has fallen silent is asked once, not by each who asks.
    provenAtMs = Number.POSITIVE_INFINITY;
    proof = prove(ports).finally(() => {
      provenAtMs = monotonicMs();
    });
    return proof;
  };
}

async function prove({ writeStore, writeLimiter, limiterOpen, onFailure }: ReadinessPorts): Promise<Readiness> {
  const [storeRefusal, limiterRefusal] = await Promise.all([
    refusalOf(writeStore(), onFailure, (error) => new MeshError(codeOf(error))),
    refusalOf(
      writeLimiter().then((taken) => {
        if (!taken) throw new MeshError("limiter_unavailable");
      }),
      onFailure,
      () => new MeshError("limiter_unavailable"),
    ),
  ]);
  return {
    store: storeRefusal === undefined ? "ok" : "unavailable",
    limiter: limiterRefusal === undefined ? "ok" : limiterOpen ? "uncounted" : "unavailable",
    refusal: storeRefusal ?? (limiterOpen ? undefined : limiterRefusal),
  };
}

/** What sends are answered with meanwhile: who asks after a full disk must not go and look for a database. */
function codeOf(error: unknown): ErrorCode {
  return error instanceof StorageError && error.kind === "disk_full" ? "insufficient_storage" : "storage_unavailable";
}

/** Undefined where the work succeeded in time. */
async function refusalOf(
  work: Promise<void>,
  onFailure: (error: unknown) => void,
  toRefusal: (error: unknown) => MeshError,
): Promise<MeshError | undefined> {
  try {
    await answerInTime(work);
    return undefined;
  } catch (error) {
    onFailure(error);
    return toRefusal(error);
  }
}
