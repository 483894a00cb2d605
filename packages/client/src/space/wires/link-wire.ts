// The wire over a link to a broker, for Node: the link reconnects by itself, and this reports that to the spaces.
import { trustInMemory } from "../../link/broker-trust.ts";
import { openLink } from "../../link/link.ts";
import type { Link, LinkOptions, LinkStatus } from "../../link/link-contract.ts";
import type { SpaceWire } from "../space-wire.ts";
import { WireListeners } from "./wire-listeners.ts";

export type LinkWireOptions = Omit<LinkOptions, "kind" | "onStatus" | "onPush"> & {
  /** The broker's key, instead of `trust`. Without either, the first proven key is trusted. */
  readonly brokerKey?: string;
  /** The time after which an unanswered request is sent again. */
  readonly requestTimeoutMs?: number;
};

const defaultRequestTimeoutMs = 30_000;

export function openLinkWire({ requestTimeoutMs, brokerKey, ...options }: LinkWireOptions): SpaceWire {
  const { trust = trustInMemory(brokerKey) } = options;
  return wireOver((events) => openLink({ ...options, trust, kind: "client", ...events }), requestTimeoutMs);
}

/** Over a link that is opened here with these listeners. */
export function wireOver(
  open: (events: Pick<LinkOptions, "onStatus" | "onPush">) => Link,
  requestTimeoutMs = defaultRequestTimeoutMs,
): SpaceWire {
  const listeners = new WireListeners();
  const link = open({
    onPush: (push) => listeners.push(push),
    onStatus: (status) => {
      if (status.state === "online") listeners.up();
      if (status.state !== "offline" && status.state !== "stopped") return;
      const stopped = stoppedBy(status);
      listeners.down(stopped);
      if (stopped !== undefined && status.state === "offline") void link.close();
    },
  });
  return {
    isUp: () => link.status().state === "online",
    request: (type, input) => link.request(type, input, { timeoutMs: requestTimeoutMs }),
    listen: (events) => listeners.add(events),
    close: () => link.close(),
  };
}

/** A broker that refuses this member will not accept it later either, so waiting for that would never end. */
function stoppedBy(status: Extract<LinkStatus, { state: "offline" | "stopped" }>): string | undefined {
  const isRefused = status.reason === "unauthorized" || status.reason === "member_revoked";
  return status.state === "stopped" || isRefused ? `${status.reason}: ${status.detail}` : undefined;
}
