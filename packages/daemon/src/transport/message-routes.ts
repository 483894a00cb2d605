// Routes for messages: sending them, and looking at what was sent.
import type { IncomingHttpHeaders } from "node:http";
import type { Validator } from "@claudemesh/http/validation";
import { MeshError } from "@claudemesh/protocol/errors";
import { type TopicPost, topicPostSchema } from "@claudemesh/protocol/messages/local-requests";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import { type SendRequest, sendManyRequestSchema, sendRequestSchema } from "@claudemesh/protocol/messages/send-request";
import { showOutboxRow } from "../core/outbox-row.ts";
import type { OutboxStore } from "../ports.ts";
import { countSend, type DaemonCounters } from "../services/daemon-counters.ts";
import { type EnqueuePorts, enqueueSend } from "../services/enqueue-send.ts";
import { showNewest, showPage } from "./pages.ts";
import { noQuery, type OutboxQuery, outboxParams, outboxQuery, readPageParameters, readTopicName } from "./queries.ts";
import { type Answer, ok, type Route } from "./route.ts";
import { answerEach, readItem, refuseIdempotencyKey, sendListDepth, sendListSchema } from "./send-many.ts";

export type MessageApi = {
  readonly enqueue: EnqueuePorts;
  /** Says what is wrong with a value that is to be a send. */
  readonly checkSend: Validator;
  readonly counters: DaemonCounters;
  readonly outbox: Pick<OutboxStore, "list" | "listBefore" | "inspect">;
};

const sendHeaders = {
  "Idempotency-Key": "The client_message_id, bare or as a quoted string; the same send again is safe.",
};

export const messageRoutes: readonly Route<MessageApi>[] = [
  {
    method: "POST",
    url: "/v1/send",
    summary: "Send a message; it is durable here when this answers 202",
    schema: { querystring: noQuery, body: sendRequestSchema },
    headers: sendHeaders,
    handle: (api, { body, headers }) => send(api, body as SendRequest, keyIn(headers)),
  },
  {
    method: "POST",
    url: "/v1/send/many",
    summary: "Send up to 100 messages; each is answered as if it had come alone, in their order",
    schema: { querystring: noQuery, body: sendManyRequestSchema },
    looserBody: sendListSchema,
    jsonDepth: sendListDepth,
    handle: async (api, { body, headers }, onRefused) => {
      refuseIdempotencyKey(keyIn(headers));
      const { sends } = body as { readonly sends: readonly unknown[] };
      const answer = (item: unknown) => send(api, readItem(api.checkSend, item), undefined);
      return ok({ results: await answerEach(sends, answer, onRefused) });
    },
  },
  {
    method: "POST",
    url: "/v1/topic/post",
    summary: "Send a message to a topic: the same as /v1/send with its address",
    schema: { querystring: noQuery, body: topicPostSchema },
    headers: sendHeaders,
    handle: (api, { body, headers }) => {
      const { topic, ...content } = body as TopicPost;
      return send(api, { to: `#${readTopicName(topic)}`, ...content }, keyIn(headers));
    },
  },
  {
    method: "GET",
    url: "/v1/outbox",
    summary:
      "What was sent from here, oldest first; from the beginning, behind a cursor, before one, or the newest page",
    schema: { querystring: outboxQuery },
    handle: (api, { query }) => listOutbox(api, query as OutboxQuery),
  },
  {
    method: "GET",
    url: "/v1/outbox/:id",
    summary: "One outbox row, by either of its ids, and the chain of requeues that it belongs to",
    schema: { querystring: noQuery, params: outboxParams },
    handle: (api, { params }) => inspectOutbox(api, (params as { id: string }).id),
  },
];

const keyIn = (headers: IncomingHttpHeaders) => headers["idempotency-key"] as string | undefined;

async function send(api: MessageApi, request: SendRequest, idempotencyKey: string | undefined): Promise<Answer> {
  try {
    const answer = await enqueueSend(api.enqueue, request, idempotencyKey);
    countSend(api.counters, answer);
    return answer;
  } catch (error) {
    api.counters.sends.refused++;
    throw error;
  }
}

function listOutbox(api: MessageApi, query: OutboxQuery): Answer {
  const status = query.status as OutboxStatus | undefined;
  const page = readPageParameters(query);
  if ("after" in page) return showPage(api.outbox.list(status, page), showOutboxRow);
  return showNewest(api.outbox.listBefore(status, page), showOutboxRow);
}

function inspectOutbox(api: MessageApi, id: string): Answer {
  const found = api.outbox.inspect(id);
  if (found === undefined) throw new MeshError("not_found", `The outbox has no row ${id}.`);
  return ok({ row: showOutboxRow(found.row), chain: found.chain.map(showOutboxRow) });
}
