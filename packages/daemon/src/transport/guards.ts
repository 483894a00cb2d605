// What stands before every route. On the Unix socket the file's mode is the guard; on the loopback anything on this
// machine can connect, a web page included, so each request is held against Host, Origin and the local token.
import type { Socket } from "node:net";
import { MeshError } from "@claudemesh/protocol/errors";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { findTokenInQuery, isAllowedOrigin, isLoopbackHost, readBearer } from "../core/request-guards.ts";
import type { LocalTokens } from "../files/local-token.ts";
import type { Log } from "../ports.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    unixSocketOnly?: boolean;
  }
}

export type GuardOptions = {
  readonly tokens: Pick<LocalTokens, "isValid" | "secrets">;
  /** Who is let in besides the holder of the token. */
  readonly openings: () => { readonly allowedOrigins: readonly string[]; readonly publicHealthCheck: boolean };
  readonly log: Log;
  /** True for a connection that came over TCP. */
  readonly isLoopback: (socket: Socket) => boolean;
  readonly isStopping: () => boolean;
};

export function addGuards(server: FastifyInstance, options: GuardOptions): void {
  server.addHook("onRequest", (request, reply, done) => {
    if (options.isStopping()) reply.header("connection", "close");
    done(refusalOf(options, request));
  });
}

function refusalOf(options: GuardOptions, request: FastifyRequest): MeshError | undefined {
  if (options.isStopping()) return new MeshError("stopping");
  const isLoopback = options.isLoopback(request.raw.socket);
  if (isLoopback) {
    const refusal = refuseStranger(options, request);
    if (refusal !== undefined) return refusal;
  }
  const tokenRefusal = refuseTokenInQuery(options, request);
  if (tokenRefusal !== undefined || !isLoopback) return tokenRefusal;
  return refuseWithoutToken(options, request) ?? refuseOverTcp(request);
}

function refuseStranger(options: GuardOptions, request: FastifyRequest): MeshError | undefined {
  const { host, origin } = request.raw.headersDistinct;
  if (host?.length !== 1 || !isLoopbackHost(host[0])) return new MeshError("forbidden_host");
  const origins = origin ?? [undefined];
  if (!origins.every((each) => isAllowedOrigin(each, options.openings().allowedOrigins)))
    return new MeshError("forbidden_origin");
  return undefined;
}

function refuseTokenInQuery(options: GuardOptions, request: FastifyRequest): MeshError | undefined {
  const at = request.raw.url?.indexOf("?") ?? -1;
  if (at < 0) return undefined;
  const query = request.raw.url?.slice(at + 1) ?? "";
  const result = options.tokens
    .secrets()
    .map((token) => findTokenInQuery(query, token))
    .find(({ found }) => found);
  if (result?.found !== true) return undefined;
  const fields = { event: "security", what: "token_in_query", method: request.method, parameter: result.parameter };
  options.log.warn(fields, "a token came in a query string, where logs and histories keep it");
  return new MeshError("token_in_query");
}

function refuseWithoutToken(options: GuardOptions, request: FastifyRequest): MeshError | undefined {
  if (options.openings().publicHealthCheck && request.method === "GET" && request.routeOptions.url === "/v1/health") {
    return undefined;
  }
  const guess = readBearer(request.headers.authorization);
  if (guess !== undefined && options.tokens.isValid(guess)) return undefined;
  return new MeshError("unauthorized", "Send the local token as Authorization: Bearer <local_token>.");
}

function refuseOverTcp(request: FastifyRequest): MeshError | undefined {
  if (request.routeOptions.config.unixSocketOnly !== true) return undefined;
  return new MeshError("forbidden", "This is answered over the daemon's Unix socket alone.");
}
