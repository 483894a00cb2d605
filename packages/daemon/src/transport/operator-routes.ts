// Routes for an operator: where a message is, marking one as read, requeueing, dismissing and pruning outbox rows, and the
// audit.
import type { AuditReport } from "@claudemesh/client/daemon";
import { MeshError } from "@claudemesh/protocol/errors";
import { limits } from "@claudemesh/protocol/messages/limits";
import {
  type DismissRequest,
  dismissRequestSchema,
  type PruneRequest,
  pruneRequestSchema,
} from "@claudemesh/protocol/messages/local-requests";
import { type RequeueRequest, requeueRequestSchema } from "@claudemesh/protocol/messages/requeue-request";
import type { InboxEntries } from "../ports.ts";
import { type DismissPorts, dismissRow } from "../services/dismiss.ts";
import { type FindMessagePorts, findMessage } from "../services/find-message.ts";
import { type RequeuePorts, requeueRow } from "../services/requeue.ts";
import { type PrunePorts, pruneOutbox } from "../services/retention.ts";
import { emptyBody, noQuery } from "./queries.ts";
import { type Answer, ok, type Route } from "./route.ts";

export type OperatorApi = {
  readonly requeue: RequeuePorts;
  readonly dismiss: DismissPorts;
  readonly prune: PrunePorts;
  readonly messages: FindMessagePorts;
  readonly audit: () => Promise<AuditReport>;
  readonly marks: { readonly entries: Pick<InboxEntries, "markRead">; readonly nowMs: () => number };
};

const idParams = {
  type: "object",
  additionalProperties: false,
  required: ["id"],
  properties: { id: { type: "string", minLength: 1, maxLength: limits.clientMessageIdCharacters } },
} as const;

const idOf = (params: unknown) => (params as { readonly id: string }).id;

export const operatorRoutes: readonly Route<OperatorApi>[] = [
  {
    method: "POST",
    url: "/v1/outbox/requeue",
    summary: "Retire a stuck row and queue its message under a new id",
    schema: { querystring: noQuery, body: requeueRequestSchema },
    handle: async (api, { body }) => ok({ ...(await requeueRow(api.requeue, body as RequeueRequest)) }),
  },
  {
    method: "POST",
    url: "/v1/outbox/dismiss",
    summary: "Let a dead row go: it stays for the audit and raises no alarm any more",
    schema: { querystring: noQuery, body: dismissRequestSchema },
    handle: async (api, { body }) => ok({ ...(await dismissRow(api.dismiss, body as DismissRequest)) }),
  },
  {
    method: "POST",
    url: "/v1/outbox/prune",
    summary: "Turn old done rows into tombstones",
    schema: { querystring: noQuery, body: pruneRequestSchema },
    handle: async (api, { body }) => ok({ ...(await pruneOutbox(api.prune, (body as PruneRequest).older_than_days)) }),
  },
  {
    method: "GET",
    url: "/v1/messages/:id",
    summary: "Where a message is, as facts",
    schema: { querystring: noQuery, params: idParams },
    handle: async (api, { params }) => ok(await findMessage(api.messages, idOf(params))),
  },
  {
    method: "POST",
    url: "/v1/inbox/:id/read",
    summary: "Mark a message as read",
    schema: { querystring: noQuery, params: idParams, body: emptyBody },
    handle: (api, { params }) => markRead(api.marks, idOf(params)),
  },
  {
    method: "GET",
    url: "/v1/audit",
    summary: "Do the records balance, layer by layer?",
    schema: { querystring: noQuery },
    handle: async ({ audit }) => ok({ ...(await audit()) }),
  },
];

async function markRead({ entries, nowMs }: OperatorApi["marks"], id: string): Promise<Answer> {
  const entry = await entries.markRead(id, nowMs());
  if (entry === undefined) throw new MeshError("not_found", `The inbox has no message ${id}.`);
  return ok({ id: entry.id, client_message_id: entry.clientMessageId, read_at: entry.readAt });
}
