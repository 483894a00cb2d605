// What a broker counts, for Prometheus. One registry per broker, so that two fit in one process. Ids are never labels.
import type { SweepCounts } from "@claudemesh/messages/ports/housekeeping";
import type { OrphanReport } from "@claudemesh/messages/services/check-orphans";
import { Counter, Gauge, Registry } from "prom-client";
import type { BackendCounts } from "./stores/backend.ts";

export type BrokerMetrics = {
  /** One request was answered, over either transport. */
  readonly answered: (operation: string, status: number) => void;
  /** An id came again from its member, with other content. */
  readonly reused: () => void;
  /** A step of housekeeping has removed these rows. */
  readonly swept: (counts: SweepCounts) => void;
  /** An orphan check has come to its end. */
  readonly checked: (report: OrphanReport) => void;
  readonly contentType: string;
  readonly render: () => Promise<string>;
};

export function createBrokerMetrics(counts: () => BackendCounts, connected: () => number): BrokerMetrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: "cm_broker_requests_total",
    help: "Requests answered, by operation and status.",
    labelNames: ["operation", "status"],
    registers,
  });
  new Gauge({
    name: "cm_broker_connections",
    help: "Members' connections to this broker.",
    registers,
    collect() {
      this.set(connected());
    },
  });
  const sinceStart = (name: string, help: string, read: () => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  sinceStart(
    "cm_broker_rate_limit_passed_uncounted_total",
    "New sends that passed while the limiter was away (--limiter-open).",
    () => counts().limiterPassedUncounted,
  );
  sinceStart(
    "cm_broker_rate_limit_consumed_then_b2_rejected_total",
    "Units of budget spent on sends that the transaction then refused.",
    () => counts().limiterSpentThenRefused,
  );
  const count = (name: string, help: string, label?: string) =>
    new Counter({ name, help, registers, ...(label !== undefined && { labelNames: [label] }) });
  const reused = count(
    "cm_broker_dedupe_fingerprint_mismatch_total",
    "Sends whose id stands for other content of the same member.",
  );
  const swept = count("cm_broker_swept_rows_total", "Rows that housekeeping has removed or settled, by kind.", "kind");
  const checks = count("cm_broker_dedupe_orphan_check_total", "Orphan checks that came to their end.");
  const orphanIds = count(
    "cm_broker_dedupe_orphan_found",
    "Dedupe rows found without their message or their place in history. Anything but 0 is for a person to look at.",
  );
  const orphans = count(
    "cm_broker_orphan_found_total",
    "Rows found that do not fit together, by rule. Anything but 0 is for a person to look at.",
    "check",
  );
  return {
    reused: () => reused.inc(),
    swept: (counts) => {
      for (const [kind, rows] of Object.entries(counts)) swept.inc({ kind }, rows);
    },
    checked: (report) => {
      checks.inc();
      for (const { name, found } of report.checks) {
        orphans.inc({ check: name }, found);
        if (name.startsWith("dedupe_")) orphanIds.inc(found);
      }
    },
    answered: (operation, status) => requests.inc({ operation, status }),
    contentType: registry.contentType,
    render: () => registry.metrics(),
  };
}
