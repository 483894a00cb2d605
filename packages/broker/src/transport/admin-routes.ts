// What the broker's admin token allows over HTTP beside creating meshes: housekeeping at once, of all meshes.
import { MeshError } from "@claudemesh/protocol/errors";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { BrokerContext } from "../context.ts";
import { requireAdmin, strangerBodyBytes, translateFailures } from "./http-routes.ts";

export function registerAdminRoutes(server: FastifyInstance, broker: BrokerContext): void {
  const routes: Readonly<Record<string, () => Promise<object>>> = {
    "/v1/admin/sweep": async () => ({ swept: await broker.housekeeping.sweepNow() }),
    "/v1/admin/check": () => broker.housekeeping.checkNow(),
  };
  for (const [path, work] of Object.entries(routes)) {
    const onRequest = async (request: FastifyRequest) => requireAdmin(broker, request);
    server.post(path, { bodyLimit: strangerBodyBytes, onRequest }, async (request) => {
      refuseFields(request);
      return translateFailures(work());
    });
  }
}

/** These calls take nothing; an empty object is nothing too. */
function refuseFields({ body }: FastifyRequest): void {
  if (body === undefined) return;
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new MeshError("invalid_request", "This call takes no body.");
  }
  const [field] = Object.keys(body);
  if (field !== undefined) throw new MeshError("unknown_field", `This call does not know ${field}.`, { field });
}
