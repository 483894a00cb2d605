// What daemon and broker have agreed on, for programs that want to know before they rely on it. While the broker is
// away, what it announced last still holds here.
import type { CompatBody } from "@claudemesh/client/daemon";
import type { LinkStatus } from "@claudemesh/client/internal/link-contract";
import { announceFeatures, type NegotiatedFeatures } from "@claudemesh/protocol/features";
import { protocolVersion } from "@claudemesh/protocol/wire/frames";
import type { NegotiatedLimits } from "./negotiated-limits.ts";

export type CompatPorts = {
  readonly linkStatus: () => LinkStatus;
  /** What was kept of the last hello; undefined before the first one. */
  readonly lastNegotiated: () => NegotiatedFeatures | undefined;
  readonly limits: Pick<NegotiatedLimits, "inlineBytes" | "expiredAtOrBefore">;
  readonly nowMs: () => number;
};

export function reportCompat(ports: CompatPorts, version: string): CompatBody {
  const link = ports.linkStatus();
  const nowMs = ports.nowMs();
  const features = link.state === "online" ? link.features : ports.lastNegotiated();
  return {
    daemon_version: version,
    protocol: protocolVersion,
    // False: from an earlier connection, or none yet.
    current: link.state === "online",
    negotiated: features === undefined ? null : announceFeatures(features),
    limits: {
      inline_bytes: ports.limits.inlineBytes(),
      max_age_hours: (nowMs - ports.limits.expiredAtOrBefore(nowMs)) / 3_600_000,
    },
  };
}
