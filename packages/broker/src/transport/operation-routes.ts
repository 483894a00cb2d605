// Every operation at its path over HTTP: who asks, by a bearer token, then the run of what was asked for. What an
// operation does is not known here.
import type { Strangers } from "@claudemesh/http/strangers";
import { hashToken } from "@claudemesh/members/credentials";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Answer } from "@claudemesh/protocol/messages/accept-result";
import { type OperationName, type OperationSpec, operations } from "@claudemesh/protocol/wire/operations";
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from "fastify";
import { asksInTransaction, type Caller } from "../operations/handler.ts";
import type { LookAhead } from "../operations/look-aheads.ts";
import { operationNames, type RunOperation } from "../operations/run-operation.ts";
import { bearerOf, type CallingMembers, HttpCallers } from "./http-callers.ts";

type AskedBroker = { readonly members: CallingMembers; readonly strangers: Pick<Strangers, "roomOf"> };
type Asking = Pick<AskedBroker, "strangers"> & { readonly ask: (request: FastifyRequest) => Promise<Caller> };

/** `lookAheadOf`: what an operation begins while its caller is asked for; undefined: nothing. */
export function registerOperationRoutes(
  server: FastifyInstance,
  { members, strangers }: AskedBroker,
  run: RunOperation,
  lookAheadOf: (name: OperationName) => LookAhead | undefined,
): void {
  server.decorateRequest("tokenHash", "");
  const callers = new HttpCallers(members);
  for (const name of operationNames) {
    const lookAhead = lookAheadOf(name);
    const ask = (request: FastifyRequest) =>
      lookAhead === undefined ? callers.ask(request) : callers.askAhead(request, lookAhead);
    registerOperation(server, { ask, strangers }, run, name);
  }
}

function registerOperation(
  server: FastifyInstance,
  { ask, strangers }: Asking,
  run: RunOperation,
  name: OperationName,
): void {
  const spec: OperationSpec = operations[name];
  const { large, http } = spec;
  if (http === undefined) return;
  const admitted = new WeakMap<FastifyRequest, Caller>();
  const admit = async (request: FastifyRequest, reply: FastifyReply) => {
    admitted.set(request, await ask(request));
    reply.admit();
  };
  // Only a member makes the broker read a body. Whose connection is known is asked for beside its body, unless that is large.
  const askFirst: onRequestHookHandler = (request, reply, done) => {
    if (large === undefined && strangers.roomOf(request.raw.socket) === undefined) done();
    else admit(request, reply).then(() => done(), done);
  };
  server.route({
    method: http.method,
    url: `/v1/meshes/:mesh${http.path}`,
    ...(large !== undefined && { bodyLimit: large.bytes, config: { jsonDepth: large.jsonDepth } }),
    onRequest: [readToken, askFirst],
    handler: async (request, reply) => {
      // A body may take its time: a caller who was let in before it may be no member any more.
      const caller = (asksInTransaction(name) ? admitted.get(request) : undefined) ?? (await ask(request));
      reply.admit();
      const answer = await run(name, caller, gatherInput(spec, request));
      return sendAnswer(reply, http.names === undefined ? answer : nameFieldBack(answer, http.names));
    },
  });
}

/** Runs before the body is read: a request without a token is refused for that first, and its body is not read. */
function readToken(request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void {
  try {
    request.tokenHash = hashToken(bearerOf(request));
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

/** Path and query are text; what the schema wants as an integer or a boolean is read as such, and only in plain form. */
function readTexts(spec: OperationSpec, texts: Record<string, unknown>): Record<string, unknown> {
  const values = Object.entries(texts).map(([field, text]): [string, unknown] => {
    const property = Object.hasOwn(spec.input.properties, field) ? spec.input.properties[field] : undefined;
    const { type } = (property ?? {}) as { type?: unknown };
    const wantsInteger = type === "integer" && typeof text === "string" && /^[0-9]{1,16}$/.test(text);
    if (type === "boolean" && (text === "true" || text === "false")) return [field, text === "true"];
    return [field, wantsInteger ? Number(text) : text];
  });
  // Unlike an assignment, this keeps a field called __proto__, so that it is refused like any other unknown one.
  return Object.fromEntries(values);
}

function sendAnswer(reply: FastifyReply, answer: Answer): FastifyReply {
  if (answer.retryAfterSeconds !== undefined) reply.header("retry-after", String(answer.retryAfterSeconds));
  return reply.code(answer.status).send(answer.body);
}
