// Routes that the broker answers: topics, queues, peers. The daemon passes the question on as the member that it is,
// and the answer back as it came.
import { MeshError } from "@claudemesh/protocol/errors";
import {
  queueLeaseBodySchema,
  queueSettleBodySchema,
  type TopicRequest,
  topicRequestSchema,
} from "@claudemesh/protocol/messages/local-requests";
import { isName } from "@claudemesh/protocol/messages/names";
import { profileInputSchema } from "@claudemesh/protocol/wire/operations";
import type { AskBroker } from "../services/ask-broker.ts";
import type { PeerPins } from "../services/peer-pins.ts";
import {
  noQuery,
  numberedPageQuery,
  type OnceQuery,
  onceQuery,
  pageQuery,
  readBrokerPage,
  readNumberedPage,
  readTopicName,
  readTopicsQuery,
  type TopicsQuery,
  topicsQuery,
} from "./queries.ts";
import type { Route } from "./route.ts";

export type BrokerApi = { readonly askBroker: AskBroker; readonly pins: Pick<PeerPins, "describe"> };

const nameOf = (body: unknown) => readTopicName((body as TopicRequest).topic);

const topicRoutes: readonly Route<BrokerApi>[] = [
  {
    method: "POST",
    url: "/v1/topic/subscribe",
    summary: "Receive a topic",
    schema: { querystring: noQuery, body: topicRequestSchema },
    handle: ({ askBroker }, { body }) => askBroker("topic.subscribe", { name: nameOf(body) }),
  },
  {
    method: "POST",
    url: "/v1/topic/unsubscribe",
    summary: "Receive a topic no longer",
    schema: { querystring: noQuery, body: topicRequestSchema },
    handle: ({ askBroker }, { body }) => askBroker("topic.unsubscribe", { name: nameOf(body) }),
  },
  {
    method: "GET",
    url: "/v1/topic/list",
    summary: "Topics of the mesh, and which of them this member receives",
    schema: { querystring: topicsQuery },
    handle: ({ askBroker }, { query }) => askBroker("topic.list", readTopicsQuery(query as TopicsQuery)),
  },
];

const queueParams = {
  type: "object",
  additionalProperties: false,
  required: ["id"],
  properties: { id: { type: "string", maxLength: 512 } },
} as const;

function queueOf(params: unknown): string {
  const { id } = params as { id: string };
  if (isName(id)) return id;
  throw new MeshError("invalid_name", undefined, { field: "id" });
}

const queueRoutes: readonly Route<BrokerApi>[] = [
  {
    method: "GET",
    url: "/v1/queue/list",
    summary: "Queues of the mesh, with what waits, what is leased and what is parked in each",
    schema: { querystring: pageQuery },
    handle: ({ askBroker }, { query }) => askBroker("queue.list", readBrokerPage(query as object)),
  },
  {
    method: "POST",
    url: "/v1/queue/:id/lease",
    summary: "Take messages from a queue for a while; the same lease_request_id again gets the same ones",
    schema: { querystring: noQuery, params: queueParams, body: queueLeaseBodySchema },
    handle: ({ askBroker }, { params, body }) =>
      askBroker("queue.lease", { ...(body as object), queue: queueOf(params) }),
  },
  {
    method: "POST",
    url: "/v1/queue/:id/ack",
    summary: "Leased messages are done",
    schema: { querystring: noQuery, params: queueParams, body: queueSettleBodySchema },
    handle: ({ askBroker }, { params, body }) =>
      askBroker("queue.ack", { ...(body as object), queue: queueOf(params) }),
  },
  {
    method: "POST",
    url: "/v1/queue/:id/nack",
    summary: "Leased messages are given back",
    schema: { querystring: noQuery, params: queueParams, body: queueSettleBodySchema },
    handle: ({ askBroker }, { params, body }) =>
      askBroker("queue.nack", { ...(body as object), queue: queueOf(params) }),
  },
  {
    method: "GET",
    url: "/v1/queue/:id/parked",
    summary: "Messages that were delivered too often and wait for an operator",
    schema: { querystring: numberedPageQuery, params: queueParams },
    handle: ({ askBroker }, { params, query }) =>
      askBroker("queue.parked", { ...readNumberedPage(query as object), queue: queueOf(params) }),
  },
];

/** What is known here of each peer's key, beside what the broker says. */
function withTrust(pins: BrokerApi["pins"], answer: Awaited<ReturnType<AskBroker>>): typeof answer {
  const { items } = answer.body;
  if (answer.status !== 200 || !Array.isArray(items)) return answer;
  const known = (items as { readonly name: string; readonly pubkey: string }[]).map((peer) => pins.describe(peer));
  return { ...answer, body: { ...answer.body, items: known } };
}

const onceRoutes: readonly Route<BrokerApi>[] = [
  {
    method: "GET",
    url: "/v1/once/list",
    summary: "Keys of once with their newest epochs: all, or those in one state",
    schema: { querystring: onceQuery },
    handle: ({ askBroker }, { query }) => {
      const { state, ...page } = query as OnceQuery;
      return askBroker("once.list", { ...readBrokerPage(page), ...(state === undefined ? {} : { state }) });
    },
  },
];

const presenceRoutes: readonly Route<BrokerApi>[] = [
  {
    method: "GET",
    url: "/v1/peers",
    summary: "Members that are connected now, with what they say about themselves",
    schema: { querystring: pageQuery },
    handle: async ({ askBroker, pins }, { query }) =>
      withTrust(pins, await askBroker("peers.list", readBrokerPage(query as object))),
  },
  {
    method: "POST",
    url: "/v1/profile",
    summary: "What this member says about itself; fields that are not given stay as they are",
    schema: { querystring: noQuery, body: profileInputSchema },
    handle: ({ askBroker }, { body }) => askBroker("profile.set", body as object),
  },
];

export const brokerRoutes: readonly Route<BrokerApi>[] = [
  ...topicRoutes,
  ...queueRoutes,
  ...onceRoutes,
  ...presenceRoutes,
];
