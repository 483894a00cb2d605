// What those who watch over a broker ask it: does it live, is it ready, what has it counted.
import type { FastifyInstance } from "fastify";
import type { BrokerContext } from "../context.ts";
import { toMeshError } from "../storage-failure.ts";
import { answerInTime } from "../stores/answer-in-time.ts";
import { requireAdmin } from "./http-routes.ts";

type Watched = Pick<BrokerContext, "metrics" | "checkReady" | "adminToken">;

export function registerHealthRoutes(server: FastifyInstance, broker: Watched): void {
  server.get("/healthz", async () => ({ status: "ok" }));
  server.get("/metrics", async (request, reply) => {
    if (!isLoopback(request.socket.remoteAddress)) requireAdmin(broker, request);
    // A failure is answered in the one error shape, for which another serializer would have no words.
    const text = await broker.metrics.render();
    return reply.type(broker.metrics.contentType).serializer(String).send(text);
  });
  server.get("/readyz", async (_request, reply) => {
    try {
      await answerInTime(broker.checkReady());
      return { status: "ready" };
    } catch (error) {
      return reply.code(503).send(toMeshError(error).toBody());
    }
  });
}

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && /^(::1$|127\.|::ffff:127\.)/.test(address);
}
