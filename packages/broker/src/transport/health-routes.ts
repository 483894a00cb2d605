// What those who watch over a broker ask it: does it live, is it ready, what has it counted.
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { BrokerContext } from "../context.ts";
import { requireAdmin } from "./http-routes.ts";

type Watched = Pick<BrokerContext, "metrics" | "checkReady" | "adminToken" | "nowMs">;

export function registerHealthRoutes(server: FastifyInstance, broker: Watched): void {
  server.get("/healthz", async () => ({ status: "ok" }));
  server.get("/metrics", async (request, reply) => {
    if (!isFromThisHost(request)) requireAdmin(broker, request);
    // A failure is answered in the one error shape, for which another serializer would have no words.
    const text = await broker.metrics.render();
    return reply.type(broker.metrics.contentType).serializer(String).send(text);
  });
  server.get("/readyz", async (_request, reply) => {
    const { store, limiter, refusal } = await broker.checkReady();
    const facts = { store, limiter, time: broker.nowMs() };
    if (refusal === undefined) return { status: "ready", ...facts };
    return reply.code(503).send({ ...refusal.toBody(), ...facts });
  });
}

/** What a proxy on this host forwards comes over the loopback as well, from wherever it began. */
function isFromThisHost({ headers, socket }: FastifyRequest): boolean {
  if (headers.forwarded !== undefined || headers["x-forwarded-for"] !== undefined) return false;
  return /^(::1$|127\.|::ffff:127\.)/.test(socket.remoteAddress ?? "");
}
