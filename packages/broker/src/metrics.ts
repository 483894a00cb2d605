// What a broker counts, for Prometheus. One registry per broker, so that two fit in one process. Ids are never labels.
import type { Strangers } from "@claudemesh/http/strangers";
import type { OrphanReport } from "@claudemesh/messages/services/check-orphans";
import { Counter, Gauge, type LabelValues, Registry } from "prom-client";
import type { Swept } from "./background/sweep-everything.ts";
import { answerInTime } from "./stores/answer-in-time.ts";
import type { BackendCounts } from "./stores/backend.ts";
import type { Readiness } from "./stores/readiness.ts";

export type BrokerMetrics = {
  /** One request was answered, over either transport. */
  readonly answered: (operation: string, status: number) => void;
  /** An id came again from its member, with other content. */
  readonly reused: () => void;
  /** A step of housekeeping has removed these rows. */
  readonly swept: (counts: Swept) => void;
  /** An orphan check has come to its end. */
  readonly checked: (report: OrphanReport) => void;
  /** One try of a webhook's delivery ended, and this became of the delivery. */
  readonly webhookTried: (outcome: "delivered" | "pending" | "parked") => void;
  /** One call of `once` was decided; `outcome` is the decision's own word. */
  readonly onceAnswered: (call: string, outcome: string) => void;
  /** One call of the registrar was decided; `outcome` is its answer or refusal. */
  readonly registrarAnswered: (call: string, outcome: string) => void;
  readonly registrarVerified: (result: string) => void;
  readonly registrarOpen: (isOpen: boolean) => void;
  /** A commit of a space has its verdict: `accepted`, `replayed`, or the code of its rejection. */
  readonly committed: (verdict: string) => void;
  /** A sync frame was pushed, with the state of so many entities. */
  readonly synced: (entities: number) => void;
  /** A connection was notified that another connection holds its session. */
  readonly sessionRevoked: () => void;
  readonly contentType: string;
  readonly render: () => Promise<string>;
};

/** Read when the metrics are scraped. */
export type MetricSources = {
  readonly counts: () => BackendCounts;
  /** Members' connections to this broker. */
  readonly connected: () => number;
  /** Sessions of spaces that connections to this broker hold. */
  readonly sessionsHeld: () => number;
  /** Messages on the brokers' channel that no broker of this store had signed, since the start. */
  readonly signalsForged: () => number;
  readonly strangers: Pick<Strangers, "counts" | "refused">;
  readonly webhookCounts: () => Promise<{ readonly pending: number; readonly parked: number }>;
  /** Whether store and limiter take writes. */
  readonly checkReady: () => Promise<Pick<Readiness, "store" | "limiter">>;
  /** The store did not say; the other metrics are shown without it. */
  readonly onFailure: (error: unknown) => void;
};

export function createBrokerMetrics(sources: MetricSources): BrokerMetrics {
  const { counts, connected, sessionsHeld } = sources;
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
  present("cm_broker_connections", "Members' connections to this broker.", connected);
  present("cm_broker_space_sessions_held", "Sessions of spaces that connections to this broker hold.", sessionsHeld);
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
  sinceStart(
    "cm_broker_signals_forged_total",
    "Messages on the brokers' channel that no broker of this store had signed; none of them was obeyed.",
    sources.signalsForged,
  );
  registerReadiness(registers, sources);
  showStrangers(registers, sources.strangers);
  return {
    answered: countPairs(requests, ["operation", "status"]),
    ...createKeepingMetrics(registers),
    ...createWebhookMetrics(registers, sources),
    ...createRegistrarMetrics(registers),
    ...createSpaceMetrics(registers),
    contentType: registry.contentType,
    render: () => registry.metrics(),
  };
}

function registerReadiness(registers: Registry[], { checkReady }: Pick<MetricSources, "checkReady">): void {
  const up = (part: "store" | "limiter", help: string) =>
    new Gauge({
      name: `cm_broker_${part}_up`,
      help,
      registers,
      async collect() {
        this.set((await checkReady())[part] === "ok" ? 1 : 0);
      },
    });
  up("store", "1 while the store takes writes.");
  up("limiter", "1 while the limiter takes writes.");
}

/** Each pair of labels is looked up by the library once, because it happens with every request. */
function countPairs<First extends string, Second extends string>(
  counter: Counter<First | Second>,
  [first, second]: readonly [First, Second],
): (a: string, b: string | number) => void {
  const known = new Map<string, Map<string | number, { inc: () => void }>>();
  return (a, b) => {
    const bySecond = known.get(a) ?? new Map<string | number, { inc: () => void }>();
    const child = bySecond.get(b) ?? counter.labels({ [first]: a, [second]: b } as LabelValues<First | Second>);
    child.inc();
    bySecond.set(b, child);
    known.set(a, bySecond);
  };
}

const counterIn = (registers: Registry[]) => (name: string, help: string, label?: string) =>
  new Counter({ name, help, registers, ...(label !== undefined && { labelNames: [label] }) });

function createKeepingMetrics(registers: Registry[]): Pick<BrokerMetrics, "reused" | "swept" | "checked"> {
  const count = counterIn(registers);
  const reused = count(
    "cm_broker_dedupe_fingerprint_mismatch_total",
    "Sends whose id stands for other content of the same member.",
  );
  const swept = count("cm_broker_swept_rows_total", "Rows that housekeeping has removed or settled, by kind.", "kind");
  const checks = count("cm_broker_dedupe_orphan_check_total", "Orphan checks that came to their end.");
  // A count, by a name that is not a counter's.
  const orphanIds = new Gauge({
    name: "cm_broker_dedupe_orphan_found",
    help: "Dedupe rows found since the start without their message or their place in history; for a person to look at.",
    registers,
  });
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
      for (const { name, found } of report.checks) orphans.inc({ check: name }, found);
      const ids = report.checks.filter(({ name }) => name.startsWith("dedupe_"));
      for (const { found } of ids) orphanIds.inc(found);
    },
  };
}

function createWebhookMetrics(
  registers: Registry[],
  { webhookCounts, onFailure }: Pick<MetricSources, "webhookCounts" | "onFailure">,
): Pick<BrokerMetrics, "webhookTried"> {
  const webhookTries = new Counter({
    name: "cm_broker_webhook_attempts_total",
    help: "Tries of webhook deliveries, by what became of the delivery: delivered, pending (tried again), parked.",
    labelNames: ["outcome"],
    registers,
  });
  new Gauge({
    name: "cm_broker_webhook_deliveries",
    help: "Webhook deliveries in the store that are open or parked, of all meshes and brokers.",
    labelNames: ["state"],
    registers,
    async collect() {
      // What was true once is not shown as if it still were.
      this.reset();
      try {
        const { pending, parked } = await answerInTime(webhookCounts());
        this.set({ state: "pending" }, pending);
        this.set({ state: "parked" }, parked);
      } catch (error) {
        onFailure(error);
      }
    },
  });
  return { webhookTried: (outcome) => webhookTries.inc({ outcome }) };
}

function showStrangers(registers: Registry[], strangers: MetricSources["strangers"]): void {
  new Gauge({
    name: "cm_broker_strangers",
    help: "Connections, and requests waiting, of peers that have not shown who they are.",
    labelNames: ["what"],
    registers,
    collect() {
      const { connections, requests } = strangers.counts();
      this.set({ what: "connections" }, connections);
      this.set({ what: "requests" }, requests);
    },
  });
  new Counter({
    name: "cm_broker_strangers_refused_total",
    help: "Connections and requests refused because their address had too many of peers that have not shown who they are.",
    labelNames: ["what"],
    registers,
    collect() {
      this.reset();
      const { connection, request } = strangers.refused();
      this.inc({ what: "connections" }, connection);
      this.inc({ what: "requests" }, request);
    },
  });
}

function createRegistrarMetrics(
  registers: Registry[],
): Pick<BrokerMetrics, "onceAnswered" | "registrarAnswered" | "registrarVerified" | "registrarOpen"> {
  const once = new Counter({
    name: "cm_broker_once_total",
    help: "Calls of once, by call and what was decided.",
    labelNames: ["call", "outcome"],
    registers,
  });
  const requests = new Counter({
    name: "cm_broker_registrar_requests_total",
    help: "Calls of the registrar that change something, by call and outcome.",
    labelNames: ["call", "outcome"],
    registers,
  });
  const verifications = new Counter({
    name: "cm_broker_registrar_verifications_total",
    help: "Verifications of registrations, by result.",
    labelNames: ["result"],
    registers,
  });
  const open = new Gauge({
    name: "cm_broker_registrar_open",
    help: "1 while the registrar's tables prove single use, 0 while it is closed.",
    registers,
  });
  return {
    onceAnswered: countPairs(once, ["call", "outcome"]),
    registrarAnswered: countPairs(requests, ["call", "outcome"]),
    registrarVerified: (result) => verifications.inc({ result }),
    registrarOpen: (isOpen) => open.set(isOpen ? 1 : 0),
  };
}

function createSpaceMetrics(registers: Registry[]): Pick<BrokerMetrics, "committed" | "synced" | "sessionRevoked"> {
  const count = counterIn(registers);
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
