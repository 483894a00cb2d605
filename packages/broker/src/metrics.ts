// What a broker counts, for Prometheus. One registry per broker, so that two fit in one process. Ids are never labels.
import { Counter, Gauge, Registry } from "prom-client";
import type { BackendCounts } from "./stores/backend.ts";

export type BrokerMetrics = {
  /** One request was answered, over either transport. */
  readonly answered: (operation: string, status: number) => void;
  /** One call of `once` was decided; `outcome` is the decision's own word. */
  readonly onceAnswered: (call: string, outcome: string) => void;
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
  const once = new Counter({
    name: "cm_broker_once_total",
    help: "Calls of once, by call and what was decided.",
    labelNames: ["call", "outcome"],
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
  return {
    answered: (operation, status) => requests.inc({ operation, status }),
    onceAnswered: (call, outcome) => once.inc({ call, outcome }),
    contentType: registry.contentType,
    render: () => registry.metrics(),
  };
}
