// Puts together what the routes for operators need: requeue, dismiss, prune, read marks, where a message is, and the audit.
import type { Sealer } from "@claudemesh/client/seal";
import type { WayNow } from "../core/message-notes.ts";
import type { BrokerLink, Clock, Log } from "../ports.ts";
import { createAudit } from "../services/audit.ts";
import type { EnqueuePorts } from "../services/enqueue-send.ts";
import type { NegotiatedLimits } from "../services/negotiated-limits.ts";
import type { NameOf } from "../services/peer-pins.ts";
import { requireReachable } from "../services/resolve-destination.ts";
import type { DaemonStores } from "../stores/sqlite/open-stores.ts";
import type { OperatorApi } from "../transport/operator-routes.ts";

export type OperatorWiring = {
  readonly stores: DaemonStores;
  readonly enqueue: EnqueuePorts;
  /** A pending row with this time of enqueueing has become due. */
  readonly onDue: (enqueuedAt: number) => void;
  readonly sealer: Sealer;
  readonly link: BrokerLink;
  readonly limits: NegotiatedLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly ownName: string;
  readonly nameOf: NameOf;
  readonly requestTimeoutMs: number;
  readonly way: () => WayNow;
  readonly onDespiteForgotten: () => void;
};

export function wireOperator(wiring: OperatorWiring): OperatorApi {
  const { stores, enqueue, onDue, sealer, link, limits, clock, log, ownName, requestTimeoutMs, way } = wiring;
  const { onDespiteForgotten } = wiring;
  const { outbox, requeues, dismissals, entries, search, auditing } = stores;
  const { ownPubkey, gauge, nextClientMessageId } = enqueue;
  // A daemon that never connected has no list of members, and still knows its own name.
  const nameOf: NameOf = (pubkey, remembered) =>
    wiring.nameOf(pubkey, remembered) ?? (pubkey === ownPubkey ? ownName : undefined);
  return {
    requeue: {
      requeues,
      outbox,
      link,
      limits,
      gauge,
      compose: enqueue,
      sealer,
      nextClientMessageId,
      clock,
      log,
      requestTimeoutMs,
      admitSuccessor: async (destination) => {
        enqueue.membership.require();
        await requireReachable(enqueue, destination);
      },
      onDue,
      onDespiteForgotten,
    },
    dismiss: { outbox, dismissals, clock, log },
    prune: { outbox, clock, log },
    messages: { ownPubkey, way, outbox, entries, search, link, nameOf, requestTimeoutMs },
    audit: createAudit({ ownPubkey, outbox, auditing, link, limits, clock, requestTimeoutMs }),
    marks: { entries, nowMs: clock.nowMs },
  };
}
