// The broker over HTTP: every operation at its path for a bearer token, creating and joining meshes, and health.

import { sameSecret } from "@claudemesh/members/credentials";
import type { Member, Mesh } from "@claudemesh/members/ports";
import { createMesh } from "@claudemesh/members/services/create-mesh";
import { joinMesh } from "@claudemesh/members/services/join-mesh";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Answer } from "@claudemesh/protocol/messages/accept-result";
import {
  type CreateMeshRequest,
  createMeshRequestSchema,
  type JoinRequest,
  joinRequestSchema,
} from "@claudemesh/protocol/wire/invite";
import { type OperationName, type OperationSpec, operations } from "@claudemesh/protocol/wire/operations";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { BrokerContext } from "../context.ts";
import type { Caller } from "../operations/handler.ts";
import { operationNames, type RunOperation } from "../operations/run-operation.ts";
import { toMeshError } from "../storage-failure.ts";
import { bearerOf, HttpCallers } from "./http-callers.ts";

export function registerHttpRoutes(server: FastifyInstance, broker: BrokerContext, run: RunOperation): void {
  const callers = new HttpCallers(broker);
  for (const name of operationNames) {
    const spec: OperationSpec = operations[name];
    if (spec.http !== undefined) registerOperation(server, callers, run, name, spec, spec.http);
  }
  registerMeshRoutes(server, broker);
  server.get("/healthz", async () => ({ status: "ok" }));
  server.get("/metrics", async (request, reply) => {
    if (!isLoopback(request.socket.remoteAddress)) requireAdmin(broker, request);
    return reply
      .type(broker.metrics.contentType)
      .serializer(String)
      .send(await broker.metrics.render());
  });
  server.get("/readyz", async (_request, reply) => {
    try {
      await broker.checkReady();
      return { status: "ready" };
    } catch (error) {
      return reply.code(503).send(toMeshError(error).toBody());
    }
  });
}

function registerOperation(
  server: FastifyInstance,
  callers: HttpCallers,
  run: RunOperation,
  name: OperationName,
  spec: OperationSpec,
  http: NonNullable<OperationSpec["http"]>,
): void {
  const { large } = spec;
  const admitted = large && new WeakMap<FastifyRequest, Caller>();
  const ask = (request: FastifyRequest) => (name === "send" ? callers.askSender(request) : callers.ask(request));
  server.route({
    method: http.method,
    url: `/v1/meshes/:mesh${http.path}`,
    ...(large === undefined
      ? { onRequest: refuseAnonymous }
      : {
          bodyLimit: large.bytes,
          config: { jsonDepth: large.jsonDepth },
          // Only a member makes the broker read so much.
          onRequest: async (request: FastifyRequest) => {
            admitted?.set(request, await ask(request));
          },
        }),
    handler: async (request, reply) => {
      const caller = admitted?.get(request) ?? (await ask(request));
      const answer = await run(name, caller, gatherInput(spec, request));
      return sendAnswer(reply, http.names === undefined ? answer : nameFieldBack(answer, http.names));
    },
  });
}

/** Before the body: whoever shows no token hears that, whatever else is wrong, and makes nobody read. */
function refuseAnonymous(request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void {
  try {
    bearerOf(request);
  } catch (error) {
    done(error as MeshError);
    return;
  }
  done();
}

/** Fields of path, query and body as one input. A field given twice would make its meaning a matter of order. */
function gatherInput(spec: OperationSpec, request: FastifyRequest): object {
  const { mesh: _mesh, ...params } = request.params as Record<string, string>;
  const body = readBody(spec, request.body);
  if (body !== undefined && isEmpty(params) && isEmpty(request.query as object)) return body;
  const input: Record<string, unknown> = {};
  const take = (source: object) => {
    for (const [field, value] of Object.entries(source)) {
      if (Object.hasOwn(input, field)) {
        throw new MeshError("unknown_field", `The field ${JSON.stringify(field)} is given twice.`, { field });
      }
      Object.defineProperty(input, field, { value, enumerable: true, configurable: true, writable: true });
    }
  };
  take(readTexts(spec, params));
  take(readTexts(spec, request.query as Record<string, unknown>));
  if (body !== undefined) take(body);
  return input;
}

function readBody(spec: OperationSpec, body: unknown): object | undefined {
  if (body === undefined) return undefined;
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new MeshError("invalid_request", "The body must be a JSON object.");
  }
  return spec.http?.names === undefined ? body : nameFields(body, spec.http.names);
}

function isEmpty(fields: object): boolean {
  for (const _ in fields) return false;
  return true;
}

/** A body's own names as the input's. */
function nameFields(body: object, names: Readonly<Record<string, string>>): object {
  const fields = Object.entries(body).map(([field, value]): [string, unknown] => {
    if (Object.values(names).includes(field)) {
      throw new MeshError("unknown_field", `The field ${JSON.stringify(field)} is not known here.`, { field });
    }
    return [Object.hasOwn(names, field) ? (names[field] ?? field) : field, value];
  });
  return Object.fromEntries(fields);
}

/** A refusal names the field as the caller did. */
function nameFieldBack(answer: Answer, names: Readonly<Record<string, string>>): Answer {
  const { field, message } = answer.body;
  const [given] = Object.entries(names).find(([, name]) => name === field) ?? [];
  if (given === undefined || typeof message !== "string") return answer;
  const renamed = message.replace(JSON.stringify(field), JSON.stringify(given));
  return { ...answer, body: { ...answer.body, field: given, message: renamed } };
}

/** Path and query are text; what the schema wants as an integer is read as such, and only in plain form. */
function readTexts(spec: OperationSpec, texts: Record<string, unknown>): Record<string, unknown> {
  const values = Object.entries(texts).map(([field, text]): [string, unknown] => {
    const property = Object.hasOwn(spec.input.properties, field) ? spec.input.properties[field] : undefined;
    const { type } = (property ?? {}) as { type?: unknown };
    const wantsInteger = type === "integer" && typeof text === "string" && /^[0-9]{1,16}$/.test(text);
    return [field, wantsInteger ? Number(text) : text];
  });
  // Unlike an assignment, this keeps a field called __proto__, so that it is refused like any other unknown one.
  return Object.fromEntries(values);
}

function registerMeshRoutes(server: FastifyInstance, broker: BrokerContext): void {
  server.post<{ Body: CreateMeshRequest }>(
    "/v1/meshes",
    { schema: { body: createMeshRequestSchema }, preValidation: async (request) => requireAdmin(broker, request) },
    async (request, reply) => {
      const ports = { store: broker.members, nowMs: broker.nowMs, nextId: broker.nextId };
      const { created, mesh, owner } = await translateFailures(createMesh(ports, request.body));
      return reply.code(created ? 201 : 200).send(membershipBody(mesh, owner));
    },
  );
  server.post<{ Body: JoinRequest; Params: { mesh: string } }>(
    "/v1/meshes/:mesh/join",
    { schema: { body: joinRequestSchema } },
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

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && /^(::1$|127\.|::ffff:127\.)/.test(address);
}

export function requireAdmin(broker: BrokerContext, request: FastifyRequest): void {
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

function sendAnswer(reply: FastifyReply, answer: Answer): FastifyReply {
  if (answer.retryAfterSeconds !== undefined) reply.header("retry-after", String(answer.retryAfterSeconds));
  return reply.code(answer.status).send(answer.body);
}
