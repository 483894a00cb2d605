// The whole local API, put together from its tables, and how a table becomes a server: call, encode, tell failures.
// What a route does is in the services; who may call it in guards.ts.
import type { HttpServerOptions } from "@claudemesh/http/server";
import type { FastifyInstance, FastifyReply } from "fastify";
import { toMeshError } from "../storage-failure.ts";
import { type BrokerApi, brokerRoutes } from "./broker-routes.ts";
import { type ControlApi, controlRoutes } from "./control-routes.ts";
import { type InboxApi, inboxRoutes } from "./inbox-routes.ts";
import { type MessageApi, messageRoutes } from "./message-routes.ts";
import { describeApi } from "./openapi.ts";
import { type OperatorApi, operatorRoutes } from "./operator-routes.ts";
import { type PinApi, pinRoutes } from "./pin-routes.ts";
import { noQuery } from "./queries.ts";
import { type Answer, type OnRefused, ok, type Route, type TextAnswer } from "./route.ts";

export type LocalApi = MessageApi & InboxApi & OperatorApi & BrokerApi & PinApi & ControlApi;

export const routes: readonly Route<LocalApi>[] = [
  ...messageRoutes,
  ...inboxRoutes,
  ...operatorRoutes,
  ...brokerRoutes,
  ...pinRoutes,
  ...controlRoutes,
  {
    method: "GET",
    url: "/openapi.json",
    summary: "This description",
    schema: { querystring: noQuery },
    handle: ({ version }) => ok(describeApi(routes, version)),
  },
];

export function registerRoutes(server: FastifyInstance, api: LocalApi, onError: HttpServerOptions["onError"]): void {
  for (const route of routes) {
    const { method, url, schema, looserBody, jsonDepth, unixSocketOnly = false } = route;
    const onRefused: OnRefused = (error) => onError(error, { method, route: url });
    server.route({
      method,
      url,
      // An answer that goes on has no end at which its head could be sent alone.
      exposeHeadRoute: !("stream" in route),
      schema: looserBody === undefined ? schema : { ...schema, body: looserBody },
      config: { unixSocketOnly, longLived: "stream" in route, ...(jsonDepth === undefined ? {} : { jsonDepth }) },
      handler: async (request, reply) => {
        try {
          if ("handle" in route) return send(reply, await route.handle(api, request, onRefused));
          route.stream(api, request, reply);
          return reply;
        } catch (error) {
          throw toMeshError(error);
        }
      },
    });
  }
}

function send(reply: FastifyReply, answer: Answer | TextAnswer): FastifyReply {
  reply.code(answer.status);
  if ("text" in answer) return reply.header("content-type", answer.contentType).send(answer.text);
  return reply.headers(answer.headers ?? {}).send(answer.body);
}
