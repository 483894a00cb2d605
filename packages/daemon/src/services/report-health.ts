// How the daemon is doing, as facts: the broker, the drain, the outbox, the inbox, the disk. One word sums them up for
// monitors that read no further.

import type { BrokerStatusBody, HealthBody } from "@claudemesh/client/daemon";
import type { LinkRoute } from "@claudemesh/client/internal/broker-route";
import type { LinkStatus } from "@claudemesh/client/internal/link-contract";
import type { DrainMode } from "../core/drain-state.ts";
import type { InboxStore, OutboxStore } from "../ports.ts";
import type { Membership } from "./membership.ts";
import type { StorageGauge } from "./storage-gauge.ts";

export type HealthPorts = {
  readonly mesh: { readonly id: string; readonly name: string };
  readonly member: { readonly name: string; readonly pubkey: string };
  readonly membership: Pick<Membership, "ended">;
  readonly linkStatus: () => LinkStatus;
  readonly linkRoute?: () => LinkRoute | undefined;
  readonly drainMode: () => DrainMode;
  readonly outbox: Pick<OutboxStore, "counts">;
  readonly inbox: Pick<InboxStore, "unreadable" | "rebuildAfter">;
  readonly gauge: Pick<StorageGauge, "usedBytes" | "maxBytes">;
  readonly startedAt: number;
  readonly streams: () => number;
  /** Which ones are set; a daemon that serves people has none. */
  readonly failpoints?: string;
};

export function reportHealth(ports: HealthPorts): HealthBody {
  const link = ports.linkStatus();
  const drain = ports.drainMode();
  const { ended } = ports.membership;
  const healthy = link.state === "online" && (drain.state === "running" || drain.state === "resting");
  return {
    status: healthy ? "ok" : "degraded",
    mesh: ports.mesh.name,
    mesh_id: ports.mesh.id,
    member: ports.member,
    pid: process.pid,
    started_at: ports.startedAt,
    membership: ended === undefined ? { state: "member" } : { state: "ended", since: ended.at },
    broker: { ...showLink(link), ...showRoute(ports.linkRoute?.()) },
    drain,
    outbox: {
      ...ports.outbox.counts(),
      used_bytes: ports.gauge.usedBytes(),
      max_bytes: ports.gauge.maxBytes,
    },
    event_streams: ports.streams(),
    inbox: { unreadable: ports.inbox.unreadable(), rebuilding: ports.inbox.rebuildAfter() !== undefined },
    ...(ports.failpoints === undefined ? {} : { failpoints: ports.failpoints }),
  };
}

const firstKeyNote = "This home knew no broker's key and trusts this one from now on; compare it with an owner's.";

/** Which broker it is, or is tried next, and which others there are. */
function showRoute(route: LinkRoute | undefined): Partial<BrokerStatusBody> {
  if (route === undefined) return {};
  const { current: url, others, nextTryAtMs } = route;
  return { url, others, ...(nextTryAtMs === undefined ? {} : { next_try_at: nextTryAtMs }) };
}

export function showLink(status: LinkStatus): BrokerStatusBody {
  switch (status.state) {
    case "connecting":
      return { state: "connecting" };
    case "online":
      return {
        state: "online",
        broker_key: status.brokerKey,
        ...(status.isFirstKey === true && { note: firstKeyNote }),
      };
    case "offline": {
      const { state, reason, detail, keys } = status;
      return { state, reason, detail, ...(keys !== undefined && { expected_key: keys.expected, seen_key: keys.seen }) };
    }
    case "stopped":
      return { state: status.state, reason: status.reason, detail: status.detail };
  }
}
