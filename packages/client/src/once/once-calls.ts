// One request of `once` each, with suitable retries, and its answer as a closed union. Every call here is safe to
// repeat: a claim because of its claim id, a record and a resolve because of their content.
import { MeshError } from "@claudemesh/protocol/errors";
import { backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import { type BrokerCall, BrokerRefusal } from "../broker/broker-client.ts";
import type { OnceClock } from "./once-clock.ts";

export type OnceRetrying = { readonly clock: OnceClock; readonly random: () => number };

const backoff = { minMs: 100, maxMs: 2_000 };

/** True where the same request may succeed later, or has succeeded and only its answer was lost. */
export function isTransient(error: unknown): boolean {
  return (error instanceof MeshError || error instanceof BrokerRefusal) && error.retryable;
}

/** Only a failure to connect proves that a request was not carried out. */
export function mayBeCarriedOut(error: unknown): boolean {
  if (!(error instanceof MeshError)) return true;
  return error.code !== "not_our_broker" && !(error.code === "broker_unreachable" && error.details.sent !== true);
}

/** Tries again with growing pauses. `forMs` says how long, given the latest failure. */
export async function retryFor<T>(
  retrying: OnceRetrying,
  forMs: number | ((error: unknown) => number),
  request: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const { clock, random } = retrying;
  const sinceMs = clock.monotonicMs();
  for (let failures = 1; ; failures++) {
    try {
      return await request();
    } catch (error) {
      if (!isTransient(error) || signal?.aborted) throw error;
      const leftMs = sinceMs + (typeof forMs === "number" ? forMs : forMs(error)) - clock.monotonicMs();
      if (leftMs <= 0) throw error;
      await clock.sleep(Math.min(backoffDelayMs(failures, random(), backoff), leftMs), signal);
    }
  }
}

export type ClaimRequest = {
  readonly key: string;
  readonly claim_id: string;
  readonly inputs_fingerprint: string;
  readonly lease_s: number;
};

export type ClaimAnswer =
  | { readonly type: "held"; readonly epoch: number }
  | { readonly type: "done"; readonly epoch: number; readonly result: unknown }
  | { readonly type: "running"; readonly epoch: number; readonly leaseUntil: number }
  | { readonly type: "uncertain"; readonly epoch: number; readonly claimId: unknown }
  /** This claim was resolved away before its caller got the answer. */
  | { readonly type: "resolved_away" };

export async function askForClaim(call: BrokerCall, request: ClaimRequest): Promise<ClaimAnswer> {
  let body: Readonly<Record<string, unknown>>;
  try {
    body = (await call("once.claim", request)) as Record<string, unknown>;
  } catch (error) {
    if (!(error instanceof MeshError)) throw error;
    const { epoch, lease_until, claim_id } = error.details;
    switch (error.code) {
      case "running":
        return { type: "running", epoch: Number(epoch), leaseUntil: Number(lease_until) };
      case "uncertain":
        return { type: "uncertain", epoch: Number(epoch), claimId: claim_id };
      case "epoch_settled":
        return { type: "resolved_away" };
      default:
        throw error;
    }
  }
  if (!Number.isSafeInteger(body.epoch))
    throw new MeshError("internal", "The broker answered a claim without an epoch.");
  const epoch = Number(body.epoch);
  return Object.hasOwn(body, "result") ? { type: "done", epoch, result: body.result } : { type: "held", epoch };
}
