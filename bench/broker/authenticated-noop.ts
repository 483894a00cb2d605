// Routes that do nothing for whoever may call them: the product's HTTP server, parser, schema and credentials on the
// product's own store, and then an answer of the same shape. What a retry costs is judged by it. Argument: the store as
// JSON; answers one order with the port it listens on.
import type { AddressInfo } from "node:net";
import process from "node:process";
import { createHttpServer } from "@claudemesh/http/server";
import { authenticateToken } from "@claudemesh/members/services/member-tokens";
import { type AcceptRequest, acceptRequestSchema } from "@claudemesh/protocol/messages/accept-request";
import { limits } from "@claudemesh/protocol/messages/limits";
import { type RegisterInput, registrarOperations } from "@claudemesh/protocol/wire/registrar-operations";
import type { FastifyRequest } from "fastify";
import { serveOrders } from "../processes/orders.ts";
import { openStore, type StorePlace } from "./store-place.ts";

const [placeJson] = process.argv.slice(2);
if (placeJson === undefined) throw new Error("give the store as JSON");
const { members } = await openStore(JSON.parse(placeJson) as StorePlace);

const server = createHttpServer({
  maxBodyBytes: limits.frameBytes,
  maxInFlight: 4_096,
  busyCode: "busy",
  onError: () => undefined,
});
async function authenticate(request: FastifyRequest): Promise<void> {
  const { mesh: wanted } = request.params as { mesh: string };
  const token = (request.headers.authorization ?? "").slice("Bearer ".length);
  await authenticateToken({ store: members }, wanted, token);
}
server.post("/v1/meshes/:mesh/messages", { schema: { body: acceptRequestSchema } }, async (request, reply) => {
  await authenticate(request);
  const { client_message_id } = request.body as AcceptRequest;
  return reply.code(200).send({
    broker_message_id: "01890a5d-ac96-774b-bcce-b302099a8057",
    client_message_id,
    history_id: 1,
    duplicate: true,
    history_available: true,
    first_seen_at: 1,
  });
});
const { input: registerSchema } = registrarOperations["registrar.register"];
server.post("/v1/meshes/:mesh/registrar/requests", { schema: { body: registerSchema } }, async (request, reply) => {
  await authenticate(request);
  const { approval_id, authorization_nonce: _, ...asked } = request.body as RegisterInput;
  const key = "0".repeat(64);
  const { attempt_id, artifact_hash } = asked;
  return reply.code(200).send({
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
  });
});
await server.listen({ host: "127.0.0.1", port: 0 });

serveOrders<"port", number>(() => (server.server.address() as AddressInfo).port);
