// Operations that do nothing, for callers that may call them: the broker's own way in over HTTP, with its server,
// credentials, schemas and counters, on the broker's own store, and then an answer of the same shape. What a retry costs
// is compared with it. Argument: the store as JSON; answers one order with the port it listens on.
import type { AddressInfo } from "node:net";
import process from "node:process";
import { createBrokerMetrics } from "@claudemesh/broker/testing/metrics";
import { registerOperationRoutes } from "@claudemesh/broker/testing/operation-routes";
import { compileInputs, type RunOperation } from "@claudemesh/broker/testing/run-operation";
import { createHttpServer } from "@claudemesh/http/server";
import { Strangers } from "@claudemesh/http/strangers";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { RegisterInput } from "@claudemesh/protocol/wire/registrar-operations";
import { serveOrders } from "../processes/orders.ts";
import { openStore, type StoreLocation } from "./store-location.ts";

const [locationJson] = process.argv.slice(2);
if (locationJson === undefined) throw new Error("give the store as JSON");
const { members, counts, messages } = await openStore(JSON.parse(locationJson) as StoreLocation);
const webhookCounts = () => messages.webhooks.counts();
const metrics = createBrokerMetrics({
  counts,
  connected: () => 0,
  sessionsHeld: () => 0,
  signalsForged: () => 0,
  webhookCounts,
  checkReady: async () => ({ store: "ok", limiter: "ok" }),
  strangers: new Strangers(1),
  onFailure: () => undefined,
});
const validators = compileInputs();

const answerNothing: RunOperation = async (name, _caller, input) => {
  const refusal = validators.get(name)?.(input);
  if (refusal !== undefined) throw refusal;
  metrics.answered(name, 200);
  if (name === "send") return { status: 200, body: acceptBody(input as AcceptRequest) };
  if (name === "registrar.register") return { status: 200, body: registerBody(input as RegisterInput) };
  throw new Error(`${name} is not measured`);
};

function acceptBody({ client_message_id }: AcceptRequest): Record<string, unknown> {
  return {
    broker_message_id: "01890a5d-ac96-774b-bcce-b302099a8057",
    client_message_id,
    history_id: 1,
    duplicate: true,
    history_available: true,
    first_seen_at: 1,
  };
}

function registerBody({ approval_id, authorization_nonce: _, ...asked }: RegisterInput): Record<string, unknown> {
  const key = "0".repeat(64);
  const { attempt_id, artifact_hash } = asked;
  return {
    registration: {
      registration_id: "01890a5d-ac96-774b-bcce-b302099a8057",
      ...asked,
      binding: artifact_hash,
      replay_key: key,
      effect_key: key,
      approval_id,
      registered_by: artifact_hash,
      registered_at: 1,
    },
    state: "registered_closed",
    verification: { state: "registered_closed", verifier: attempt_id, reasons: [], verified_at: 1 },
    duplicate: true,
  };
}

const server = createHttpServer({
  maxBodyBytes: limits.frameBytes,
  maxInFlight: 4_096,
  busyCode: "busy",
  onError: () => undefined,
});
registerOperationRoutes(server, { members, strangers: new Strangers(1) }, answerNothing, () => undefined);
await server.listen({ host: "127.0.0.1", port: 0 });

serveOrders<"port", number>(() => (server.server.address() as AddressInfo).port);
