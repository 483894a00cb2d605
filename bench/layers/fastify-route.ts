// The HTTP layer alone: Fastify as it comes, with its own JSON parser and Ajv, the schema of our route, and an answer
// of the same shape. No storage, no hash, no guard. Argument: the path of the Unix socket to listen on.
import process from "node:process";
import { type SendRequest, sendRequestSchema } from "@claudemesh/protocol/messages/send-request";
import { fastify } from "fastify";
import { announceReady } from "../processes/orders.ts";

const [socketPath] = process.argv.slice(2);
if (socketPath === undefined) throw new Error("give the path of the socket");

const server = fastify();
server.post("/v1/send", { schema: { body: sendRequestSchema } }, async (request, reply) => {
  const { client_message_id } = request.body as SendRequest;
  return reply.code(202).send({
    client_message_id,
    outbox_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    status: "queued",
    duplicate: false,
    request_fingerprint: "0123456789abcdef",
  });
});
await server.listen({ path: socketPath });
announceReady();
