// What the daemon does when its link comes up, goes down or ends. Each service does its own part; this file is the order.
// Why: docs/decisions/0122.
import type { LinkStatus } from "@claudemesh/client/internal/link-contract";
import type { DestinationGonePush, PushFrame } from "@claudemesh/protocol/wire/frames";
import type { Log } from "../ports.ts";
import type { DestinationDirectory } from "./destination-directory.ts";
import type { Drain } from "./drain.ts";
import type { EventHub } from "./event-hub.ts";
import type { Expiry } from "./expire.ts";
import type { MemberDirectory } from "./member-directory.ts";
import type { Membership } from "./membership.ts";
import type { NegotiatedLimits } from "./negotiated-limits.ts";
import type { PeerPins } from "./peer-pins.ts";
import type { InboxRebuild } from "./rebuild-inbox.ts";
import type { Receiver } from "./receive.ts";

/** Why the daemon cannot go on, as its log and its exit say it. */
export type FatalEnd = { readonly reason: string; readonly message: string };

export type FollowPorts = {
  readonly limits: Pick<NegotiatedLimits, "adopt">;
  readonly directory: Pick<MemberDirectory, "refresh" | "nameOf">;
  readonly pins: Pick<PeerPins, "describe">;
  /** The name to show, and never one that is pinned to another key. */
  readonly nameOf: (pubkey: string) => string | undefined;
  readonly membership: Pick<Membership, "applyLinkStatus">;
  readonly destinations: Pick<DestinationDirectory, "forget" | "forgetAll">;
  readonly drain: Pick<Drain, "linkUp" | "linkDown">;
  readonly expiry: Pick<Expiry, "sweep" | "settleUnknownFates">;
  readonly receiver: Pick<Receiver, "receive">;
  readonly rebuild: Pick<InboxRebuild, "run">;
  readonly events: Pick<EventHub, "brokerStatus" | "publish">;
  readonly noticeSleep: () => void;
  /** What answers at the broker's address could not prove to be our broker. */
  readonly onNotOurBroker: () => void;
  readonly log: Log;
  readonly onFatal: (end: FatalEnd) => void;
  /** Brokers have announced these addresses of the mesh. */
  readonly onBrokers: (urls: readonly string[]) => void;
};

export type LinkFollower = {
  readonly onStatus: (status: LinkStatus) => void;
  readonly onPush: (push: PushFrame) => void;
};

export function followLink(ports: FollowPorts): LinkFollower {
  let lastOffline: string | undefined;
  let hasLoggedFirstKey = false;
  const inBackground = (what: string, work: Promise<unknown>) => {
    work.catch((error: unknown) => ports.log.error({ event: "background_failed", what, err: error }, `${what} failed`));
  };
  return {
    onStatus: (status) => {
      ports.membership.applyLinkStatus(status);
      ports.events.brokerStatus(status);
      switch (status.state) {
        case "connecting":
          return;
        case "online":
          lastOffline = undefined;
          if (status.isFirstKey === true && !hasLoggedFirstKey) {
            hasLoggedFirstKey = true;
            ports.log.warn({ event: "broker_key_kept", broker_key: status.brokerKey }, firstKey);
          }
          return goOnline(ports, status, inBackground);
        case "offline":
          ports.drain.linkDown();
          if (status.reason === "not_our_broker") ports.onNotOurBroker();
          // Every failed reconnect has the same reason; it is logged once.
          if (lastOffline === status.reason) return;
          lastOffline = status.reason;
          return logOffline(ports.log, status);
        case "stopped":
          ports.drain.linkDown();
          return endDaemon(ports, status);
      }
    },
    onPush: (push) => {
      if (push.type === "message") ports.receiver.receive(push);
      else if (push.type === "destination_gone") forgetDestination(ports, push, inBackground);
      else if (push.type === "brokers_changed") ports.onBrokers(push.brokers);
      else if ("pubkey" in push) publishMemberChange(ports, push, inBackground);
    },
  };
}

const firstKey = "this home knew no broker's key and trusts this one from now on; compare it with an owner's";

function logOffline(log: Log, { reason, detail, keys }: Extract<LinkStatus, { state: "offline" }>): void {
  if (reason === "not_our_broker") {
    const shown = { expected_key: keys?.expected, seen_key: keys?.seen };
    const advice =
      "offline, not our broker: nothing that it says counts; if its key was changed on purpose, run mesh trust-broker";
    log.error({ event: "not_our_broker", detail, ...shown }, advice);
    return;
  }
  log.warn({ event: "broker_offline", reason, detail }, "the broker is away");
}

function goOnline(
  ports: FollowPorts,
  status: Extract<LinkStatus, { state: "online" }>,
  inBackground: (what: string, work: Promise<unknown>) => void,
): void {
  const { features, hello } = status;
  ports.noticeSleep();
  if (hello.brokers !== undefined) ports.onBrokers(hello.brokers);
  ports.log.info({ event: "broker_online", mesh_id: hello.mesh_id, features }, "connected to the broker");
  for (const remark of status.defaulted ?? []) ports.log.warn({ event: "feature_parameter_defaulted" }, remark);
  const adopted = ports.limits.adopt(features).then((maxAge) => {
    if (maxAge.ok) return;
    const message = `[outbox] max_age_hours_override is ${maxAge.overrideHours}, and this broker's window allows ${maxAge.limitHours}`;
    ports.onFatal({ reason: maxAge.error, message });
  });
  inBackground("keeping the broker's parameters", adopted);
  ports.destinations.forgetAll();
  ports.drain.linkUp();
  inBackground("refreshing the member list", ports.directory.refresh());
  inBackground(
    "ending old rows",
    ports.expiry.sweep().then(() => ports.expiry.settleUnknownFates()),
  );
  inBackground("rebuilding the inbox", ports.rebuild.run());
}

function forgetDestination(
  ports: FollowPorts,
  { kind, ref }: DestinationGonePush,
  inBackground: (what: string, work: Promise<unknown>) => void,
): void {
  ports.destinations.forget({ kind, ref });
  if (kind === "dm") inBackground("refreshing the member list", ports.directory.refresh());
}

function publishMemberChange(
  ports: FollowPorts,
  push: Extract<PushFrame, { pubkey: string }>,
  inBackground: (what: string, work: Promise<unknown>) => void,
): void {
  const { directory, events, pins, nameOf } = ports;
  if (push.type === "peer_join") {
    const { type, ...peer } = push;
    events.publish(type, pins.describe(peer));
  }
  if (push.type === "peer_leave") {
    const { type, pubkey } = push;
    events.publish(type, { pubkey, name: nameOf(pubkey) ?? null });
  }
  if (push.type === "member_revoked" || directory.nameOf(push.pubkey) === undefined) {
    inBackground("refreshing the member list", directory.refresh());
  }
}

function endDaemon(ports: FollowPorts, status: Extract<LinkStatus, { state: "stopped" }>): void {
  // Our own close is no news.
  if (status.reason === "closed") return;
  const fields = { event: "link_stopped", reason: status.reason, detail: status.detail };
  ports.log.warn({ ...fields, negotiation: status.negotiation }, "the broker and this daemon cannot work together");
  ports.onFatal({ reason: status.reason, message: `${status.reason}: ${status.detail}. ${wayOut[status.reason]}` });
}

const copied =
  "If it runs on a copy of this home, give one of them keys of its own: claudemesh daemon remint --invite <invite>.";
const unfit = "Upgrade the broker or this claudemesh, or have the broker's settings corrected.";

/** What a person should do who reads why the daemon ended. */
const wayOut: Readonly<Record<Exclude<Extract<LinkStatus, { state: "stopped" }>["reason"], "closed">, string>> = {
  replaced_by_newer: `Another daemon of this member has connected since. ${copied}`,
  older_connection_kept: `Another daemon of this member is connected already. ${copied}`,
  feature_unavailable: unfit,
  feature_param_invalid: unfit,
  feature_param_below_floor: unfit,
};
