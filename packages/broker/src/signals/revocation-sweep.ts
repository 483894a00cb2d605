// Finds members that were revoked through another broker whose signal was lost: asks the store every half second who was
// revoked in the last minutes, and ends their connections here. One question at a time.
// Why: docs/decisions/0133.
import type { Recipient } from "./shared-connections.ts";

export type RevocationSweepOptions = {
  readonly nowMs: () => number;
  readonly findRevokedSince: (sinceMs: number) => Promise<readonly Recipient[]>;
  readonly cut: (member: Recipient) => void;
  readonly onFailure: (error: unknown) => void;
};

/** A connection of a former member reads for a second at most. */
const intervalMs = 500;
/** How far the clocks of two brokers may be apart. What is missed even so is found where every member is looked up. */
const lookBackMs = 300_000;

export type RevocationSweep = {
  readonly sweep: () => Promise<void>;
  readonly stop: () => void;
};

export function startRevocationSweep(options: RevocationSweepOptions): RevocationSweep {
  let underway: Promise<void> | undefined;
  const look = async () => {
    for (const member of await options.findRevokedSince(options.nowMs() - lookBackMs)) options.cut(member);
  };
  const sweep = () => {
    underway ??= look()
      .catch(options.onFailure)
      .finally(() => {
        underway = undefined;
      });
    return underway;
  };
  const timer = setInterval(() => void sweep(), intervalMs);
  return { sweep, stop: () => clearInterval(timer) };
}
