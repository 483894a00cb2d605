// Puts together what queueing a send needs. Nothing is decided here.
import { nodeSha256 } from "@claudemesh/client/internal/node-sha256";
import { createUlidGenerator } from "@claudemesh/protocol/ids";
import type { WayNow } from "../core/message-notes.ts";
import type { Chance, Clock } from "../ports.ts";
import type { ManagedBrokerLink } from "../services/broker-link.ts";
import type { Drain } from "../services/drain.ts";
import type { EnqueuePorts, WayFacts } from "../services/enqueue-send.ts";
import type { Expiry } from "../services/expire.ts";
import type { Membership } from "../services/membership.ts";
import type { NegotiatedLimits } from "../services/negotiated-limits.ts";
import type { DaemonStores } from "../stores/sqlite/open-stores.ts";
import type { OperatorWiring } from "./wire-operator.ts";

export type SendingWiring = Pick<
  EnqueuePorts,
  "ownPubkey" | "directory" | "pins" | "destinations" | "outbox" | "gauge" | "sealer"
> & {
  readonly membership: Membership;
  readonly link: ManagedBrokerLink;
  readonly limits: NegotiatedLimits;
  readonly drain: Drain;
  readonly expiry: Expiry;
  readonly clock: Pick<Clock, "nowMs">;
  readonly randomBytes: Chance["randomBytes"];
  readonly stores: Pick<DaemonStores, "nextOutboxId">;
};

export type Sending = { readonly enqueue: EnqueuePorts } & Pick<OperatorWiring, "onDue" | "way">;

export function wireSending(wiring: SendingWiring): Sending {
  const { limits, drain, expiry, clock, randomBytes, stores } = wiring;
  const enqueue: EnqueuePorts = {
    ...wiring,
    inlineBytes: limits.inlineBytes,
    way: () => wayOf(wiring),
    sha256: nodeSha256,
    nowMs: clock.nowMs,
    nextOutboxId: stores.nextOutboxId,
    nextClientMessageId: createUlidGenerator({ nowMs: clock.nowMs, randomBytes }),
  };
  /** A requeue has made a row pending. */
  const onDue = (enqueuedAt: number) => {
    expiry.stored(enqueuedAt);
    drain.wake();
  };
  return { enqueue, onDue, way: () => wayNow(wiring) };
}

type WayPorts = Pick<SendingWiring, "link" | "drain" | "membership">;

/** What stands between a row and the broker. For a former member only the end of its membership matters. */
function wayNow({ link, drain, membership }: WayPorts): WayNow {
  const membershipEndedAt = membership.ended?.at;
  if (membershipEndedAt !== undefined) return { membershipEndedAt };
  return link.status().state === "online" ? { rateLimited: drain.rateLimited } : { brokerAway: true };
}

function wayOf(ports: WayPorts): WayFacts {
  const { membershipEndedAt, brokerAway, rateLimited } = wayNow(ports);
  if (membershipEndedAt !== undefined) return { membership_ended_at: membershipEndedAt };
  if (brokerAway === true) return { broker: "away" };
  return rateLimited === undefined ? {} : { rate_limited: rateLimited };
}
