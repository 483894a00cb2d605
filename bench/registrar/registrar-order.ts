// What the processes that register are asked for, and what they answer.
import type { SeededRange } from "../broker/seeded-ids.ts";
import type { LatencyFigures } from "../load/latencies.ts";
import type { RegistrarMesh } from "./bench-registration.ts";

export type RegistrarOrder = {
  readonly mesh: RegistrarMesh;
  readonly callers: number;
  readonly durationMs: number;
  /** Makes requests again that are registered already; without it every key is new. */
  readonly retryAmong?: SeededRange;
  /** As if another broker, or this one before a restart, had taken the approvals: every signature is checked anew. */
  readonly approvedElsewhere?: boolean;
};

export type RegistrarResult = LatencyFigures & { readonly answered: number; readonly perSecond: number };

/** Approvals that are made ready at a time; fewer than a broker remembers the signatures of. */
export const approvalsPerStep = 1_024;
