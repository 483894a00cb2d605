// Routes for messages: sending them, reading what arrived, looking at what was sent.
import type { IncomingHttpHeaders } from "node:http";
import type { Validator } from "@claudemesh/http/validation";
import { MeshError } from "@claudemesh/protocol/errors";
import { type TopicPost, topicPostSchema } from "@claudemesh/protocol/messages/local-requests";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import { type SendRequest, sendManyRequestSchema, sendRequestSchema } from "@claudemesh/protocol/messages/send-request";
import { type InboxRecord, showInboxItem } from "../core/inbox-message.ts";
import { showOutboxRow } from "../core/outbox-row.ts";
import type { InboxStore, OutboxStore, Page } from "../ports.ts";
import { type AcceptPorts, acceptSend } from "../services/accept-send.ts";
import { countSend, type DaemonCounters } from "../services/daemon-counters.ts";
import type { MemberDirectory } from "../services/member-directory.ts";
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
  readTopicName,
  type SearchQuery,
  searchQuery,
} from "./queries.ts";
import { type Answer, ok, type Route } from "./route.ts";
import { answerEach, readItem, refuseIdempotencyKey, sendListDepth, sendListSchema } from "./send-many.ts";

export type MessageApi = {
  readonly mesh: { readonly id: string; readonly name: string };
  readonly ownPubkey: string;
  readonly accept: AcceptPorts;
  /** Says what is wrong with a value that is to be a send. */
  readonly checkSend: Validator;
  readonly counters: DaemonCounters;
  readonly outbox: Pick<OutboxStore, "list" | "inspect">;
  readonly inbox: Pick<InboxStore, "list" | "search">;
  readonly directory: Pick<MemberDirectory, "keysOf" | "nameOf">;
  readonly nameOf: MemberDirectory["nameOf"];
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
    url: "/v1/inbox",
    summary: "What arrived, oldest first",
    schema: { querystring: inboxQuery },
    handle: (api, { query }) => listInbox(api, query as InboxQuery),
  },
  {
    method: "GET",
    url: "/v1/inbox/search",
    summary: "Messages whose text has all these words, oldest first; a word that ends in * stands for its beginning",
    schema: { querystring: searchQuery },
    handle: (api, { query }) => {
      const given = query as SearchQuery;
      return showInbox(api, api.inbox.search(given.q, readPage(given)));
    },
  },
  {
    method: "GET",
    url: "/v1/outbox",
    summary: "What was sent from here, oldest first",
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
    const answer = await acceptSend(api.accept, request, idempotencyKey);
    countSend(api.counters, answer);
    return answer;
  } catch (error) {
    api.counters.sends.refused++;
    throw error;
  }
}

function listInbox(api: MessageApi, query: InboxQuery): Answer {
  const filter = { since: readSince(query.since), topic: readTopic(query.topic), senders: sendersOf(api, query.from) };
  return showInbox(api, api.inbox.list(filter, readPage(query)));
}

function showInbox(api: MessageApi, page: Page<InboxRecord>): Answer {
  return showPage(page, (record) => showInboxItem(record, api.mesh.name, api.nameOf));
}

/** A name stands for everybody who has it; one that nobody has, for nobody. */
function sendersOf(api: MessageApi, from: string | undefined): readonly string[] | undefined {
  const sender = readSender(from);
  if (sender === undefined) return undefined;
  if (sender === "self") return [api.ownPubkey];
  return "pubkey" in sender ? [sender.pubkey] : api.directory.keysOf(sender.name);
}

function listOutbox(api: MessageApi, query: OutboxQuery): Answer {
  return showPage(api.outbox.list(query.status as OutboxStatus | undefined, readPage(query)), showOutboxRow);
}

function inspectOutbox(api: MessageApi, id: string): Answer {
  const found = api.outbox.inspect(id);
  if (found === undefined) throw new MeshError("not_found", `The outbox has no row ${id}.`);
  return ok({ row: showOutboxRow(found.row), chain: found.chain.map(showOutboxRow) });
}

function showPage<T>(page: Page<T>, show: (item: T) => Record<string, unknown>): Answer {
  return ok({ items: page.items.map(show), next_cursor: page.nextCursor ?? null });
}
