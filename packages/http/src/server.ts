// The Fastify instance that daemon and broker build their routes on: strict JSON in, one error shape out, bounded
// bodies, bounded requests in flight. Routes, credentials and guards belong to the packages that use it.
// Why: docs/decisions/0002.
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { type ErrorCode, MeshError } from "@claudemesh/protocol/errors";
import { parseStrictJson, StrictJsonError, writeStrictJson } from "@claudemesh/protocol/json";
import { limits } from "@claudemesh/protocol/messages/limits";
import { refuseManyValues } from "@claudemesh/protocol/wire/value-count";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { refuseEncodings } from "./encodings.ts";
import { Partings } from "./parting.ts";
import { boundRequestsInFlight, type RequestBounds } from "./request-rooms.ts";
import { tlsBounds } from "./tls-bounds.ts";
import { boundUnreadAnswers } from "./unread-answers.ts";
import { createSchemaCompiler } from "./validation.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /**
     * The answer goes on until one side ends it. The route bounds how many there are; it does not count as a request in
     * flight.
     */
    longLived?: boolean;
    /** How deeply a body may be nested, where that is more than the server's default. */
    jsonDepth?: number;
  }
}

/** PEM texts: the certificate with its chain, and its key. */
export type TlsIdentity = { readonly cert: string; readonly key: string };

export type HttpServerOptions = RequestBounds & {
  /** Where present, the server speaks HTTPS instead of HTTP. */
  readonly tls?: TlsIdentity;
  readonly maxBodyBytes: number;
  /** Connections beyond this number are closed as soon as they open; undefined: as many as the system allows. */
  readonly maxConnections?: number;
  readonly timeouts?: HttpTimeouts;
  /**
   * How long connections stay open when the server stops, so that requests on their way are refused with an answer; 0
   * by default.
   */
  readonly lingerMs?: number;
  /** Large bodies are read in turns of the event loop that these give; undefined: at once. */
  readonly nextTurn?: (run: () => void) => void;
  /** Called for every request that ended in an error, after the answer is decided. It never sees bodies. */
  readonly onError: (error: MeshError, request: { readonly method: string; readonly route: string }) => void;
};

/** A peer that takes longer than one of these is cut off. */
export type HttpTimeouts = {
  /** For a TLS handshake, and then for all headers of a request. */
  readonly headersMs: number;
  /** For a whole request. */
  readonly requestMs: number;
  /** For taking each megabyte of an answer. */
  readonly answerMs: number;
  /** For sending the rest of a request that has been refused already, and for closing its side after a last answer. */
  readonly partingMs: number;
  /** How often connections are checked; a connection may last longer than its bound by this much. */
  readonly checkMs: number;
};

const defaultTimeouts: HttpTimeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  answerMs: 30_000,
  partingMs: 5_000,
  checkMs: 2_000,
};
/** The length before decoding: an entity id of 512 characters that are all escaped. */
const maxParamLength = 6_144;
/** How often a stopping server checks whether connections are left. */
const lookMs = 10;

type Refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply;

export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { tls, timeouts = defaultTimeouts } = options;
  const partings = new Partings(timeouts.partingMs);
  const refuse: Refuse = (error, request, reply) => {
    const refusal = asMeshError(error);
    options.onError(refusal, { method: request.method, route: request.routeOptions?.url ?? "(none)" });
    partings.letSenderFinish(request, reply);
    return reply.code(refusal.status).send(refusal.toBody());
  };
  // Node would refuse a missing Host with an answer of its own shape; refuseUnusableHeads gives ours.
  const checks = {
    connectionsCheckingInterval: timeouts.checkMs,
    requireHostHeader: false,
    shouldUpgradeCallback: (request: IncomingMessage) => isUpgrade(server, request),
  };
  const server: FastifyInstance = fastify({
    ...(tls === undefined
      ? { http: checks, https: null }
      : { https: { ...tls, ...checks, ...tlsBounds, handshakeTimeout: timeouts.headersMs } }),
    bodyLimit: options.maxBodyBytes,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: 72_000,
    forceCloseConnections: "idle",
    routerOptions: { caseSensitive: true, ignoreTrailingSlash: false, maxParamLength },
    exposeHeadRoutes: true,
    // The framework's own compilers are never used, and loading them would take a good part of the start-up time.
    schemaController: { compilersFactory: { buildValidator: refuseCompiler, buildSerializer: refuseCompiler } },
    // The framework's own refusal has another shape than every other error; refuseWhileStopping answers instead.
    return503OnClosing: false,
    clientErrorHandler: partings.refuseMalformed,
    frameworkErrors: refuse,
  });
  server.server.headersTimeout = timeouts.headersMs;
  if (options.maxConnections !== undefined) server.server.maxConnections = options.maxConnections;
  options.strangers?.watch(server.server, tls === undefined);
  readStrictJson(server, options.nextTurn);
  // Our own clients read answers with the strict reader, so a large double must be written as a double.
  server.setReplySerializer((payload) => writeStrictJson(payload as object));
  validateStrictly(server);
  refuseUnusableHeads(server);
  refuseExpectations(server);
  refuseWhileStopping(server, options.lingerMs ?? 0, partings);
  boundRequestsInFlight(server, options);
  refuseEncodings(server);
  boundUnreadAnswers(server, timeouts);
  server.setErrorHandler(refuse);
  refuseUnknownRoutes(server, refuse);
  return server;
}

/**
 * An Upgrade header for another protocol is an offer, as from a client that could speak HTTP/2 as well: the request
 * itself is answered.
 */
function isUpgrade({ server }: FastifyInstance, { headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === "websocket" && server.listenerCount("upgrade") > 0;
}

/** Reading so many bytes takes a few milliseconds, whatever they hold. */
const smallBodyBytes = 65_536;

function readStrictJson(server: FastifyInstance, nextTurn: HttpServerOptions["nextTurn"]): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    const bytes = body as Buffer;
    const maxDepth = request.routeOptions.config?.jsonDepth ?? limits.jsonDepth;
    const read = () => {
      const refusal = refuseManyValues(bytes);
      if (refusal !== undefined) {
        done(refusal);
        return;
      }
      let value: unknown;
      try {
        value = parseStrictJson(bytes, { maxDepth });
      } catch (error) {
        done(asMeshError(error));
        return;
      }
      done(null, value);
    };
    if (nextTurn === undefined || bytes.length <= smallBodyBytes) read();
    else nextTurn(read);
  });
}

function validateStrictly(server: FastifyInstance): void {
  const compile = createSchemaCompiler();
  server.setValidatorCompiler(({ schema }) => {
    const validate = compile(schema as object);
    return (value: unknown) => {
      const error = validate(value);
      return error === undefined ? { value } : { error };
    };
  });
}

/**
 * Requests have the strict validator and replies the strict writer. A route that asks for another compiler has a
 * mistake.
 */
function refuseCompiler(): never {
  throw new TypeError("replies have no schemas here, and requests no other validator");
}

/** Runs after the guards of the package that uses this server, and before the body, which no handler would read. */
function refuseUnknownRoutes(server: FastifyInstance, refuse: Refuse): void {
  server.addHook("preParsing", (request, reply, _body, done) => {
    if (!request.is404) {
      done();
      return;
    }
    const methods = methodsOf(server, request.url);
    if (methods.length > 0) {
      reply.header("allow", methods.join(", "));
      done(new MeshError("method_not_allowed"));
      return;
    }
    done(new MeshError("not_found", `There is no ${request.method} ${pathOf(request.url)} here.`));
  });
  // The hook above has refused before this handler would run.
  server.setNotFoundHandler((request, reply) => refuse(new MeshError("not_found"), request, reply));
}

function refuseUnusableHeads(server: FastifyInstance): void {
  server.addHook("onRequest", (request, _reply, done) => {
    const { headers, httpVersionMinor, url } = request.raw;
    // No path and no query of ours contains U+0000, and not every store could hold it.
    if (url?.includes("%00")) done(new MeshError("nul_in_field", undefined, { field: "url" }));
    else if (headers.host !== undefined || httpVersionMinor === 0) done();
    else done(new MeshError("invalid_request", "The Host header is missing.", { field: "Host" }));
  });
}

/** Node handles 100-continue itself, and would refuse any other expectation without a body. */
function refuseExpectations(server: FastifyInstance): void {
  const unmet = new WeakSet<IncomingMessage>();
  server.server.on("checkExpectation", (request, response) => {
    unmet.add(request);
    server.server.emit("request", request, response);
  });
  server.addHook("onRequest", (request, _reply, done) => {
    if (request.raw.headers.expect !== undefined && unmet.has(request.raw)) done(new MeshError("expectation_failed"));
    else done();
  });
}

/**
 * Closing the server ends the connections that seem idle, and a request that is on its way would be lost with them. So
 * they stay open for a moment, in which each further request is answered with the refusal that the server is stopping.
 */
function refuseWhileStopping(server: FastifyInstance, lingerMs: number, partings: Partings): void {
  let stopping = false;
  server.addHook("preClose", async () => {
    stopping = true;
    const until = performance.now() + lingerMs;
    do {
      // One turn of the event loop reads what has arrived already; the answers keep their connections open until they
      // are written.
      await turn();
      await turn();
    } while (performance.now() < until && (await openConnections(server)) > 0 && (await sleep(lookMs, true)));
    partings.cutNow();
  });
  server.addHook("onRequest", (_request, _reply, done) => {
    if (stopping) done(new MeshError("stopping"));
    else done();
  });
  // A connection that was busy when the stop began would otherwise stay idle until its keep-alive ends.
  server.addHook("onSend", (_request, reply, payload, done) => {
    if (stopping) reply.header("connection", "close");
    done(null, payload);
  });
}

function openConnections(server: FastifyInstance): Promise<number> {
  return new Promise((resolve) => {
    server.server.getConnections((error, count) => resolve(error === null ? count : 0));
  });
}

const fastifyCodes: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "payload_too_large",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "unsupported_media_type",
  FST_ERR_CTP_INVALID_TYPE: "unsupported_media_type",
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: "invalid_request",
  FST_ERR_CTP_EMPTY_JSON_BODY: "invalid_json",
  FST_ERR_BAD_URL: "invalid_request",
  FST_ERR_MAX_PARAM_LENGTH: "invalid_request",
};

/** Any failure as the one error class. An unexpected one becomes `internal`, with its cause kept for the log alone. */
export function asMeshError(error: unknown): MeshError {
  if (error instanceof MeshError) return error;
  if (error instanceof StrictJsonError) {
    const code = error.reason === "too_large" ? "payload_too_large" : error.reason;
    return new MeshError(code, error.message);
  }
  if (typeof error === "object" && error !== null) {
    const { code, cause } = error as { code?: unknown; cause?: unknown };
    if (cause instanceof MeshError) return cause;
    const catalogueCode = typeof code === "string" ? fastifyCodes[code] : undefined;
    if (catalogueCode !== undefined) return new MeshError(catalogueCode);
  }
  return new MeshError("internal", undefined, {}, error);
}

function pathOf(url: string): string {
  return url.split("?", 1)[0] ?? "";
}

function methodsOf(server: FastifyInstance, url: string): string[] {
  return ["GET", "HEAD", "POST", "PUT", "DELETE"].filter(
    (method) => server.findRoute({ method, url: pathOf(url) }) !== null,
  );
}
