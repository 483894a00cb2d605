// What a broker counts, for Prometheus. One registry per broker, so that two fit in one process. Ids are never labels.
import { Counter, Gauge, Registry } from "prom-client";
import type { BackendCounts } from "./stores/backend.ts";

export type BrokerMetrics = {
  /** One request was answered, over either transport. */
  readonly answered: (operation: string, status: number) => void;
  /** One call of `once` was decided; `outcome` is the decision's own word. */
  readonly onceAnswered: (call: string, outcome: string) => void;
  /** One call of the registrar was decided; `outcome` is its answer or refusal. */
  readonly registrarAnswered: (call: string, outcome: string) => void;
  readonly registrarVerified: (result: string) => void;
  readonly registrarOpen: (isOpen: boolean) => void;
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
  const registrar = createRegistrarMetrics(registers);
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
    ...registrar,
    contentType: registry.contentType,
    render: () => registry.metrics(),
  };
}

function createRegistrarMetrics(registers: Registry[]) {
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
    registrarAnswered: (call: string, outcome: string) => requests.inc({ call, outcome }),
    registrarVerified: (result: string) => verifications.inc({ result }),
    registrarOpen: (isOpen: boolean) => open.set(isOpen ? 1 : 0),
  };
}
