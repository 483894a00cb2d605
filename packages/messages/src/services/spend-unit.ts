// One unit of a mesh's budget for something new that has an id, which is spent or refused. The
// caller checks first whether it is new, and again when it is refused: what exists already is not a matter of budget.
// Why: docs/decisions/0053.
import { MeshError } from "@claudemesh/protocol/errors";
import type { Limiter } from "../ports/limiter.ts";
import type { LimitOptions } from "./limit-accepts.ts";

export type SpendPorts = {
  readonly limiter: Limiter;
  readonly limits: Pick<LimitOptions, "whenUnavailable" | "onPassedUncounted">;
};

/** The refusal; undefined where the unit is spent. The same id in the same window spends nothing more. */
export async function spendUnit(
  { limiter, limits }: SpendPorts,
  meshId: string,
  id: string,
  nowMs: number,
): Promise<MeshError | undefined> {
  const decision = await limiter.consume(meshId, id, nowMs);
  if (decision.type === "ok") return undefined;
  if (decision.type === "denied") {
    return new MeshError("rate_limited", undefined, { retry_after_s: decision.retryAfterSeconds });
  }
  if (limits.whenUnavailable === "refuse") return new MeshError("limiter_unavailable");
  limits.onPassedUncounted();
  return undefined;
}
