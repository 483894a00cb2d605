// Puts together what shows the daemon to other programs: events, counters, metrics, what was negotiated, and questions
// that the daemon passes on to the broker. Nothing is decided here.
import { showInboxItem } from "../core/inbox-message.ts";
import { mayBeStoredTwice } from "../core/outbox-row.ts";
import type { BrokerLink, Clock, Log } from "../ports.ts";
import { createAskBroker } from "../services/ask-broker.ts";
import { countDelivery, countTry, createDaemonCounters } from "../services/daemon-counters.ts";
import type { DestinationDirectory } from "../services/destination-directory.ts";
import type { DrainPorts } from "../services/drain.ts";
import { EventHub } from "../services/event-hub.ts";
import type { Membership } from "../services/membership.ts";
import type { NegotiatedLimits } from "../services/negotiated-limits.ts";
import type { NameOf, PeerPins } from "../services/peer-pins.ts";
import type { StoredDelivery } from "../services/receive.ts";
import type { StorageGauge } from "../services/storage-gauge.ts";
import type { DaemonStores } from "../stores/sqlite/open-stores.ts";
import type { LocalApi } from "../transport/routes.ts";

export type ControlWiringOptions = {
  readonly mesh: { readonly name: string };
  readonly stores: Pick<DaemonStores, "inbox" | "outbox" | "negotiated" | "watchOutbox">;
  readonly link: Pick<BrokerLink, "request" | "status">;
  readonly nameOf: NameOf;
  readonly destinations: Pick<DestinationDirectory, "forget">;
  readonly pins: Pick<PeerPins, "counts">;
  readonly membership: Pick<Membership, "require">;
  readonly limits: Pick<NegotiatedLimits, "inlineBytes" | "expiredAtOrBefore" | "fenceProvesNothingBefore">;
  readonly gauge: Pick<StorageGauge, "usedBytes" | "maxBytes">;
  readonly clock: Clock;
  readonly log: Log;
  readonly maxStreams: number;
  readonly requestTimeoutMs: number;
};

export type Control = {
  readonly events: EventHub;
  readonly drainEvents: Required<Pick<DrainPorts, "onTryEnd" | "onStoredAnew">>;
  readonly onDespiteForgotten: () => void;
  readonly onStored: (delivery: StoredDelivery) => void;
  readonly onNotOurBroker: () => void;
  readonly api: Pick<LocalApi, "events" | "counters" | "metrics" | "compat" | "askBroker">;
};

export function wireControl(options: ControlWiringOptions): Control {
  const { mesh, stores, link, nameOf, pins, membership, destinations, limits, gauge, clock, log } = options;
  const { maxStreams, requestTimeoutMs } = options;
  const { inbox, outbox, negotiated, watchOutbox } = stores;
  const linkStatus = link.status;
  const counters = createDaemonCounters();
  const events = new EventHub({
    inbox,
    show: (record) => showInboxItem(record, mesh.name, nameOf),
    watchOutbox,
    linkStatus,
    clock,
    log,
    maxStreams,
  });
  return {
    events,
    drainEvents: {
      onTryEnd: (end, { destination }) => {
        countTry(counters, end);
        // What was known of the destination is outdated, so the next send asks the broker.
        if (end.next === "dead") destinations.forget(destination);
      },
      onStoredAnew: (row) => {
        if (!mayBeStoredTwice(row, limits.fenceProvesNothingBefore(clock.nowMs()))) return;
        counters.retryAfterDedupeExpired++;
        const ids = { outbox_id: row.id, client_message_id: row.clientMessageId };
        log.warn({ event: "retry_after_dedupe_expired", ...ids }, "this message may be at the broker twice");
      },
    },
    onDespiteForgotten: () => {
      counters.retryAfterDedupeExpired++;
    },
    onNotOurBroker: () => {
      counters.notOurBroker++;
    },
    onStored: (delivery) => {
      countDelivery(counters, delivery);
      if (delivery.isNews) events.messageStored(delivery.bytes);
    },
    api: {
      events,
      counters,
      metrics: { counters, pins, outbox, inbox, gauge, linkStatus, streams: () => events.streams },
      compat: { linkStatus, lastNegotiated: negotiated.load, limits, nowMs: clock.nowMs },
      askBroker: createAskBroker({ link, membership, requestTimeoutMs }),
    },
  };
}
