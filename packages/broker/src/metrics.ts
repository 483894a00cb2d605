// What a broker counts, for Prometheus. One registry per broker, so that two fit in one process. Ids are never labels.
import { Counter, Gauge, Registry } from "prom-client";
import type { BackendCounts } from "./stores/backend.ts";

export type BrokerMetrics = {
  /** One request was answered, over either transport. */
  readonly answered: (operation: string, status: number) => void;
  /** One try of a webhook's delivery ended, and this became of the delivery. */
  readonly webhookTried: (outcome: "delivered" | "pending" | "parked") => void;
  readonly contentType: string;
  readonly render: () => Promise<string>;
};

/** What is asked when somebody looks. */
export type MetricSources = {
  readonly counts: () => BackendCounts;
  readonly connected: () => number;
  readonly webhookCounts: () => Promise<{ readonly pending: number; readonly parked: number }>;
};

export function createBrokerMetrics({ counts, connected, webhookCounts }: MetricSources): BrokerMetrics {
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
      const { pending, parked } = await webhookCounts();
      this.set({ state: "pending" }, pending);
      this.set({ state: "parked" }, parked);
    },
  });
  return {
    webhookTried: (outcome) => webhookTries.inc({ outcome }),
    answered: (operation, status) => requests.inc({ operation, status }),
    contentType: registry.contentType,
    render: () => registry.metrics(),
  };
}
