// Puts together what accepting a send needs, and hands every row that comes in to those who carry it on. Nothing is decided
// here.
import { nodeSha256 } from "@claudemesh/client/node-sha256";
import { createUlidGenerator } from "@claudemesh/protocol/ids";
import type { WayNow } from "./core/message-notes.ts";
import type { Chance, Clock } from "./ports.ts";
import type { AcceptPorts, WayFacts } from "./services/accept-send.ts";
import type { ManagedBrokerLink } from "./services/broker-link.ts";
import type { Drain } from "./services/drain.ts";
import type { Expiry } from "./services/expire.ts";
import type { Membership } from "./services/membership.ts";
import type { DaemonStores } from "./stores/sqlite/open-stores.ts";
import type { OperatorWiring } from "./wire-operator.ts";

type Reached = Pick<
  AcceptPorts,
  "ownPubkey" | "directory" | "pins" | "destinations" | "membership" | "outbox" | "gauge" | "sealer" | "inlineBytes"
>;

export type SendingWiring = Reached & {
  readonly link: ManagedBrokerLink;
  readonly membership: Membership;
  readonly drain: Drain;
  readonly expiry: Expiry;
  readonly clock: Pick<Clock, "nowMs">;
  readonly randomBytes: Chance["randomBytes"];
  readonly stores: Pick<DaemonStores, "nextOutboxId">;
};

export type Sending = { readonly accept: AcceptPorts } & Pick<OperatorWiring, "onDue">;

export function wireSending(wiring: SendingWiring): Sending {
  const { drain, expiry, clock, randomBytes, stores, ...reached } = wiring;
  const { store, onDue } = takeInRows(drain, expiry);
  const accept: AcceptPorts = {
    ...reached,
    way: () => wayOf(wiring),
    sha256: nodeSha256,
    nowMs: clock.nowMs,
    nextOutboxId: stores.nextOutboxId,
    nextClientMessageId: createUlidGenerator({ nowMs: clock.nowMs, randomBytes }),
    store,
  };
  return { accept, onDue };
}

type WayPorts = Pick<SendingWiring, "link" | "drain"> & { readonly membership: Pick<Membership, "ended"> };

/** What stands between a row and the broker; of a former member, nothing but that. */
export function wayNow({ link, drain, membership }: WayPorts): WayNow {
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

/** Whatever comes into the outbox is carried by the drain and, should it get too old for that, ended by the expiry. */
function takeInRows(drain: Drain, expiry: Expiry): Pick<AcceptPorts, "store"> & Pick<OperatorWiring, "onDue"> {
  return {
    store: async (row) => {
      const known = await drain.accept(row);
      if (known === undefined) expiry.stored(row.enqueuedAt);
      return known;
    },
    onDue: (enqueuedAt) => {
      expiry.stored(enqueuedAt);
      drain.wake();
    },
  };
}
