// What a broker counts, for Prometheus. One registry per broker, so that two fit in one process. Ids are never labels.
import type { OrphanReport } from "@claudemesh/messages/services/check-orphans";
import { Counter, Gauge, Registry } from "prom-client";
import type { Swept } from "./background/sweep-everything.ts";
import type { BackendCounts } from "./stores/backend.ts";

export type BrokerMetrics = {
  /** One request was answered, over either transport. */
  readonly answered: (operation: string, status: number) => void;
  /** An id came again from its member, with other content. */
  readonly reused: () => void;
  /** A step of housekeeping has removed these rows. */
  readonly swept: (counts: Swept) => void;
  /** An orphan check has come to its end. */
  readonly checked: (report: OrphanReport) => void;
  /** A commit of a space has its verdict: `accepted`, `replayed`, or the code of its rejection. */
  readonly committed: (verdict: string) => void;
  /** A sync frame was pushed, with the state of so many entities. */
  readonly synced: (entities: number) => void;
  /** A connection was told that its session is another's. */
  readonly sessionRevoked: () => void;
  readonly contentType: string;
  readonly render: () => Promise<string>;
};

export type BrokerGauges = {
  /** Members' connections to this broker. */
  readonly connected: () => number;
  /** Sessions of spaces that connections to this broker hold. */
  readonly sessionsHeld: () => number;
};

export function createBrokerMetrics(counts: () => BackendCounts, gauges: BrokerGauges): BrokerMetrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: "cm_broker_requests_total",
    help: "Requests answered, by operation and status.",
    labelNames: ["operation", "status"],
    registers,
  });
  const present = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  present("cm_broker_connections", "Members' connections to this broker.", gauges.connected);
  present(
    "cm_broker_space_sessions_held",
    "Sessions of spaces that connections to this broker hold.",
    gauges.sessionsHeld,
  );
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
  const spaces = createSpaceMetrics(count);
  return {
    ...spaces,
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

function createSpaceMetrics(
  count: (name: string, help: string, label?: string) => Counter,
): Pick<BrokerMetrics, "committed" | "synced" | "sessionRevoked"> {
  const commits = count(
    "cm_broker_space_commits_total",
    "Commits, branches made and deleted, by verdict: accepted, replayed, or the code of the rejection.",
    "verdict",
  );
  const frames = count("cm_broker_space_sync_frames_total", "Sync frames pushed to those who watch a space.");
  const entities = count("cm_broker_space_sync_entities_total", "States of entities in those frames.");
  const revoked = count(
    "cm_broker_space_sessions_revoked_total",
    "Connections that were told that a newer one holds their session.",
  );
  return {
    committed: (verdict) => commits.inc({ verdict }),
    synced: (upserts) => {
      frames.inc();
      entities.inc(upserts);
    },
    sessionRevoked: () => revoked.inc(),
  };
}
