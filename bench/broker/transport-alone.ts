// The broker's transports alone: Fastify as it comes with the schema of our route, and a WebSocket that parses, checks
// and answers; answers have the same shape. No storage, no hash, no credentials. Prints nothing; answers one order with
// the port it listens on.
import type { AddressInfo } from "node:net";
import { createSchemaCompiler } from "@claudemesh/http/validation";
import { type AcceptRequest, acceptRequestSchema } from "@claudemesh/protocol/messages/accept-request";
import { connectPath } from "@claudemesh/protocol/wire/frames";
import { fastify } from "fastify";
import { WebSocketServer } from "ws";
import { serveOrders } from "../processes/orders.ts";

const answerBody = (clientMessageId: string, historyId: number) => ({
  broker_message_id: "01890a5d-ac96-774b-bcce-b302099a8057",
  client_message_id: clientMessageId,
  history_id: historyId,
  duplicate: false,
});

const server = fastify();
let answered = 0;
server.post("/v1/meshes/:mesh/messages", { schema: { body: acceptRequestSchema } }, async (request, reply) => {
  const { client_message_id: id } = request.body as AcceptRequest;
  return reply.code(201).send(answerBody(id, ++answered));
});

const refuse = createSchemaCompiler()(acceptRequestSchema);
const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
server.server.on("upgrade", (request, socket, head) => {
  if (request.url !== connectPath) {
    socket.destroy();
    return;
  }
  sockets.handleUpgrade(request, socket, head, (webSocket) => {
    webSocket.on("message", (data) => {
      const { type, id, ...input } = JSON.parse(String(data)) as Record<string, unknown>;
      if (type === "connect") {
        webSocket.send(JSON.stringify({ type: "proof", nonce: "", broker_key: "" }));
        return;
      }
      if (type === "hello") {
        webSocket.send(JSON.stringify({ type: "reply", id, status: 200, body: {} }));
        return;
      }
      if (refuse(input) !== undefined) throw new Error("the load sent what the schema refuses");
      const body = answerBody(String(input.client_message_id), ++answered);
      webSocket.send(JSON.stringify({ type: "reply", id, status: 201, body }));
    });
  });
});
await server.listen({ host: "127.0.0.1", port: 0 });

serveOrders<"port", number>(() => (server.server.address() as AddressInfo).port);
