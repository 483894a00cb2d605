// The daemon's numbers as Prometheus reads them. Ids are never labels. The library is loaded with the first scrape: a
// daemon whose metrics are not read does without it.
import type { LinkStatus } from "@claudemesh/client/internal/link-contract";
import type { InboxStore, OutboxStore } from "../ports.ts";
import type { DaemonCounters } from "./daemon-counters.ts";
import type { PeerPins } from "./peer-pins.ts";
import type { StorageGauge } from "./storage-gauge.ts";

export type MetricsPorts = {
  readonly counters: DaemonCounters;
  readonly pins: Pick<PeerPins, "counts">;
  readonly outbox: Pick<OutboxStore, "counts">;
  readonly inbox: Pick<InboxStore, "unreadable">;
  readonly gauge: Pick<StorageGauge, "usedBytes" | "maxBytes">;
  readonly linkStatus: () => LinkStatus;
  readonly streams: () => number;
};

export type MetricsText = { readonly contentType: string; readonly text: string };

type Sample = { readonly name: string; readonly help: string } & (
  | { readonly value: number }
  | { readonly label: "outcome" | "status" | "reason"; readonly values: Readonly<Record<string, number>> }
);

export async function renderMetrics(ports: MetricsPorts): Promise<MetricsText> {
  const { Counter, Gauge, Registry } = await import("prom-client");
  const registry = new Registry();
  const define = (Metric: typeof Counter | typeof Gauge, sample: Sample) => {
    const { name, help } = sample;
    const labelNames = "label" in sample ? [sample.label] : [];
    const metric = new Metric({ name, help, labelNames, registers: [registry] });
    if ("value" in sample) metric.inc(sample.value);
    else for (const [label, value] of Object.entries(sample.values)) metric.inc({ [sample.label]: label }, value);
  };
  for (const sample of countedOf(ports.counters)) define(Counter, sample);
  const { seen, changed } = ports.pins.counts;
  const help = "Changes of the key behind a pinned name.";
  define(Counter, { name: "cm_daemon_peer_key_changes_total", help, value: seen });
  const waiting = "Pinned names whose key is another one now; nothing is sent to them.";
  define(Gauge, { name: "cm_daemon_peer_keys_changed", help: waiting, value: changed });
  for (const sample of measuredOf(ports)) define(Gauge, sample);
  return { contentType: registry.contentType, text: await registry.metrics() };
}

function countedOf(counters: DaemonCounters): Sample[] {
  const { sends, tries, inbox, unreadable, historyPruned, retryAfterDedupeExpired, notOurBroker } = counters;
  const { received, duplicate, reused } = inbox;
  return [
    {
      name: "cm_daemon_sends_total",
      help: "Sends asked of this daemon, by what became of them.",
      label: "outcome",
      values: sends,
    },
    {
      name: "cm_daemon_drain_tries_total",
      help: "Tries to give an outbox row to the broker, by how they ended.",
      label: "outcome",
      values: tries,
    },
    {
      name: "cm_daemon_dedupe_history_pruned_total",
      help: "Retries of messages that the broker had accepted and no longer keeps.",
      value: historyPruned,
    },
    {
      name: "cm_daemon_retry_after_dedupe_expired_total",
      help: "Messages sent again though the broker may have taken them before and forgotten their ids: they may be there twice.",
      value: retryAfterDedupeExpired,
    },
    {
      name: "cm_daemon_not_our_broker_total",
      help: "Connections that ended because the other side had not proven to be our broker.",
      value: notOurBroker,
    },
    {
      name: "cm_daemon_inbox_deliveries_total",
      help: "Deliveries from the broker, new to the inbox or known before.",
      label: "outcome",
      values: { received, duplicate },
    },
    {
      name: "cm_daemon_inbox_unreadable_total",
      help: "New sealed messages that are not shown: not opened, or relabelled by the broker.",
      label: "reason",
      values: unreadable,
    },
    {
      name: "cm_daemon_inbox_client_id_reused_total",
      help: "New messages that came under the client id of another message in the inbox; both are kept.",
      value: reused,
    },
  ];
}

function measuredOf({ outbox, inbox, gauge, linkStatus, streams }: MetricsPorts): Sample[] {
  return [
    {
      name: "cm_daemon_outbox_rows",
      help: "Outbox rows that are not done. Dead ones that the operator let go are counted as dismissed.",
      label: "status",
      values: outbox.counts(),
    },
    {
      name: "cm_daemon_inbox_unreadable_messages",
      help: "Messages in the inbox that were sealed and are not shown.",
      value: inbox.unreadable(),
    },
    {
      name: "cm_daemon_broker_connected",
      help: "1 while the link to the broker is up.",
      value: linkStatus().state === "online" ? 1 : 0,
    },
    {
      name: "cm_daemon_storage_used_ratio",
      help: "How much of [outbox] max_bytes is used; new sends are refused from 0.95.",
      value: gauge.usedBytes() / gauge.maxBytes,
    },
    { name: "cm_daemon_event_streams", help: "Readers of GET /v1/events.", value: streams() },
  ];
}
