// The local API as a table: parse, call, encode. What a route does is in the services; who may call it in guards.ts.
import { MeshError } from "@claudemesh/protocol/errors";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import { type SendRequest, sendRequestSchema } from "@claudemesh/protocol/messages/send-request";
import { protocolVersion } from "@claudemesh/protocol/wire/frames";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { showInboxItem } from "../core/inbox-message.ts";
import { showOutboxRow } from "../core/outbox-row.ts";
import type { InboxStore, OutboxStore, Page } from "../ports.ts";
import { type AcceptPorts, acceptSend } from "../services/accept-send.ts";
import type { MemberDirectory } from "../services/member-directory.ts";
import { type HealthPorts, reportHealth } from "../services/report-health.ts";
import { toMeshError } from "../storage-failure.ts";
import {
  type InboxQuery,
  inboxQuery,
  noQuery,
  type OutboxQuery,
  outboxParams,
  outboxQuery,
  readPage,
  readSender,
  readSince,
  readTopic,
} from "./queries.ts";

export type LocalApi = {
  readonly version: string;
  readonly mesh: { readonly id: string; readonly name: string };
  readonly ownPubkey: string;
  readonly accept: AcceptPorts;
  readonly outbox: Pick<OutboxStore, "list" | "inspect">;
  readonly inbox: Pick<InboxStore, "list">;
  readonly directory: Pick<MemberDirectory, "keysOf" | "nameOf">;
  readonly health: HealthPorts;
};

type Answer = { readonly status: number; readonly body: Record<string, unknown> };

type Route = {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly schema: { readonly querystring: object; readonly body?: object; readonly params?: object };
  readonly handle: (api: LocalApi, request: FastifyRequest) => Answer | Promise<Answer>;
};

const ok = (body: Record<string, unknown>): Answer => ({ status: 200, body });

export const routes: readonly Route[] = [
  {
    method: "POST",
    url: "/v1/send",
    schema: { querystring: noQuery, body: sendRequestSchema },
    handle: (api, { body, headers }) =>
      acceptSend(api.accept, body as SendRequest, headers["idempotency-key"] as string | undefined),
  },
  {
    method: "GET",
    url: "/v1/inbox",
    schema: { querystring: inboxQuery },
    handle: (api, { query }) => listInbox(api, query as InboxQuery),
  },
  {
    method: "GET",
    url: "/v1/outbox",
    schema: { querystring: outboxQuery },
    handle: (api, { query }) => listOutbox(api, query as OutboxQuery),
  },
  {
    method: "GET",
    url: "/v1/outbox/:id",
    schema: { querystring: noQuery, params: outboxParams },
    handle: (api, { params }) => inspectOutbox(api, (params as { id: string }).id),
  },
  {
    method: "GET",
    url: "/v1/health",
    schema: { querystring: noQuery },
    handle: (api) => ok(reportHealth(api.health)),
  },
  {
    method: "GET",
    url: "/v1/version",
    schema: { querystring: noQuery },
    handle: ({ version, mesh, ownPubkey }) =>
      ok({
        name: "claudemesh-daemon",
        version,
        protocol: protocolVersion,
        mesh: mesh.name,
        mesh_id: mesh.id,
        member_pubkey: ownPubkey,
        pid: process.pid,
      }),
  },
];

export function registerRoutes(server: FastifyInstance, api: LocalApi): void {
  for (const { method, url, schema, handle } of routes) {
    server.route({
      method,
      url,
      schema,
      handler: async (request, reply) => {
        let answer: Answer;
        try {
          answer = await handle(api, request);
        } catch (error) {
          throw toMeshError(error);
        }
        return reply.code(answer.status).send(answer.body);
      },
    });
  }
}

function listInbox(api: LocalApi, query: InboxQuery): Answer {
  const filter = { since: readSince(query.since), topic: readTopic(query.topic), senders: sendersOf(api, query.from) };
  const page = api.inbox.list(filter, readPage(query));
  return showPage(page, (record) => showInboxItem(record, api.mesh.name, api.directory.nameOf));
}

/** A name stands for everybody who has it; one that nobody has, for nobody. */
function sendersOf(api: LocalApi, from: string | undefined): readonly string[] | undefined {
  const sender = readSender(from);
  if (sender === undefined) return undefined;
  if (sender === "self") return [api.ownPubkey];
  return "pubkey" in sender ? [sender.pubkey] : api.directory.keysOf(sender.name);
}

function listOutbox(api: LocalApi, query: OutboxQuery): Answer {
  return showPage(api.outbox.list(query.status as OutboxStatus | undefined, readPage(query)), showOutboxRow);
}

function inspectOutbox(api: LocalApi, id: string): Answer {
  const found = api.outbox.inspect(id);
  if (found === undefined) throw new MeshError("not_found", `The outbox has no row ${id}.`);
  return ok({ row: showOutboxRow(found.row), chain: found.chain.map(showOutboxRow) });
}

function showPage<T>(page: Page<T>, show: (item: T) => Record<string, unknown>): Answer {
  return ok({ items: page.items.map(show), next_cursor: page.nextCursor ?? null });
}
