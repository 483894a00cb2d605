// The broker over HTTP: every operation at its path for a bearer token, creating and joining meshes.

import { sameSecret } from "@claudemesh/members/credentials";
import type { Member, Mesh } from "@claudemesh/members/ports";
import { createMesh } from "@claudemesh/members/services/create-mesh";
import { joinMesh } from "@claudemesh/members/services/join-mesh";
import { MeshError } from "@claudemesh/protocol/errors";
import { limits } from "@claudemesh/protocol/messages/limits";
import {
  type ProveReplyBody,
  type ProveRequest,
  provePath,
  proveRequestSchema,
} from "@claudemesh/protocol/wire/frames";
import {
  type CreateMeshRequest,
  createMeshRequestSchema,
  type JoinRequest,
  joinRequestSchema,
} from "@claudemesh/protocol/wire/invite";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { BrokerContext } from "../context.ts";
import { lookAheadOf } from "../operations/look-aheads.ts";
import type { RunOperation } from "../operations/run-operation.ts";
import { toMeshError } from "../storage-failure.ts";
import { bearerOf } from "./http-callers.ts";
import { registerOperationRoutes } from "./operation-routes.ts";

/** Of what strangers may send: none of their requests is longer, and no more is read before the caller is known. */
export const strangerBodyBytes = limits.helloFrameBytes;

export function registerHttpRoutes(server: FastifyInstance, broker: BrokerContext, run: RunOperation): void {
  registerOperationRoutes(server, broker, run, (name) => lookAheadOf(broker, name));
  registerProveRoute(server, broker);
  registerMeshRoutes(server, broker);
}

/** For who is about to send a secret: one signature over a nonce of theirs. It tells nothing about any mesh. */
function registerProveRoute(server: FastifyInstance, broker: BrokerContext): void {
  const options = { bodyLimit: strangerBodyBytes, schema: { body: proveRequestSchema } };
  server.post<{ Body: ProveRequest }>(provePath, options, async (request, reply) => {
    const { nonce, mesh_id = "" } = request.body;
    const body: ProveReplyBody = {
      broker_key: broker.key.publicKey,
      signature: broker.key.proveOverHttp(nonce, mesh_id),
    };
    return reply.send(body);
  });
}

function registerMeshRoutes(server: FastifyInstance, broker: BrokerContext): void {
  server.post<{ Body: CreateMeshRequest }>(
    "/v1/meshes",
    {
      bodyLimit: strangerBodyBytes,
      schema: { body: createMeshRequestSchema },
      onRequest: async (request) => requireAdmin(broker, request),
    },
    async (request, reply) => {
      const ports = { store: broker.members, nowMs: broker.nowMs, nextId: broker.nextId };
      const { created, mesh, owner } = await translateFailures(createMesh(ports, request.body));
      return reply.code(created ? 201 : 200).send(membershipBody(mesh, owner));
    },
  );
  server.post<{ Body: JoinRequest; Params: { mesh: string } }>(
    "/v1/meshes/:mesh/join",
    { bodyLimit: strangerBodyBytes, schema: { body: joinRequestSchema } },
    async (request, reply) => {
      const wanted = await translateFailures(broker.members.findMesh(request.params.mesh));
      const ports = { store: broker.members, nowMs: broker.nowMs };
      const { joined, mesh, member } = await translateFailures(joinMesh(ports, wanted, request.body));
      return reply.code(joined ? 201 : 200).send(membershipBody(mesh, member));
    },
  );
}

function membershipBody(mesh: Mesh, member: Member): Record<string, unknown> {
  return { mesh: mesh.name, mesh_id: mesh.id, member_pubkey: member.pubkey, name: member.name, role: member.role };
}

export function requireAdmin(broker: Pick<BrokerContext, "adminToken">, request: FastifyRequest): void {
  if (!sameSecret(bearerOf(request), broker.adminToken)) {
    throw new MeshError("unauthorized", "This call needs the broker's admin token.");
  }
}

export function translateFailures<T>(work: Promise<T>): Promise<T> {
  return work.catch(rethrowTranslated);
}

function rethrowTranslated(error: unknown): never {
  throw toMeshError(error);
}
