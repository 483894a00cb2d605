// Every rule that ties rows of different tables together, as a condition on one row that breaks it. Both stores run the
// same list; what differs between them is in the dialect. Rules that a table keeps by itself are not here.
import { exists, lacks, tablesOf } from "@claudemesh/storage/row-rules";
import { effectChecks } from "./effect-checks.ts";
import { check, historyKey, lacksMember, type OrphanCheck } from "./orphan-rule.ts";

const queuedKey = { queue: "text", history_id: "integer" } as const;
const leaseKey = { queue: "text", holder_pubkey: "text", lease_request_id: "text" } as const;
const subscriptionKey = { topic: "text", member_pubkey: "text" } as const;
const webhookKey = { incarnation: "text" } as const;
const webhookDeliveryKey = { ...webhookKey, history_id: "integer" } as const;
const fenceKey = { sender_pubkey: "text", client_message_id: "text" } as const;

export const orphanChecks = {
  ...effectChecks,
  search_row_without_message: check(
    "message_search",
    historyKey,
    "words that can be searched have their message",
    (d) =>
      lacks(
        d,
        "message_history",
        "h",
        `h.history_id = r.history_id AND (EXISTS (SELECT 1 FROM ${d.table("topic_message")} t
           WHERE t.mesh_id = h.mesh_id AND t.id = h.broker_message_id)
         OR EXISTS (SELECT 1 FROM ${d.table("message_queue")} q
           WHERE q.mesh_id = h.mesh_id AND q.id = h.broker_message_id))`,
      ),
    "MSG-19",
  ),
  queue_message_without_history: check(
    "queue_message",
    queuedKey,
    "a row in a queue has its history row, of a message to that queue",
    (d) =>
      lacks(
        d,
        "message_history",
        "h",
        `h.history_id = r.history_id AND h.broker_message_id = r.broker_message_id AND h.destination_kind = 'queue'
         AND h.destination_ref = r.queue`,
      ),
    "MSG-2",
  ),
  queue_message_without_queue: check("queue_message", queuedKey, "a message of a queue has its queue", (d) =>
    lacks(d, "queue", "q", "q.id = r.queue"),
  ),
  waiting_queue_message_without_message: check(
    "queue_message",
    queuedKey,
    "what waits in a queue, is leased or is parked has its message",
    (d) =>
      `(r.state = 'ready' OR r.state = 'leased' OR r.state = 'parked')
       AND ${lacks(d, "message_queue", "q", "q.id = r.broker_message_id")}`,
    "MSG-19",
  ),
  leased_message_without_lease: check(
    "queue_message",
    queuedKey,
    "what is leased now has a lease of the same token, holder and end",
    (d) =>
      `r.state = 'leased' AND r.lease_expires_at > ${d.now} AND ${lacks(
        d,
        "queue_lease",
        "l",
        `l.expires_at = r.lease_expires_at AND l.queue = r.queue AND l.lease_token = r.lease_token
         AND l.holder_pubkey = r.lease_holder`,
      )}`,
  ),
  acked_message_without_settlement: check(
    "queue_message",
    queuedKey,
    "what was acked has the settlement of that token",
    (d) =>
      `r.state = 'acked' AND ${lacks(
        d,
        "queue_settlement",
        "s",
        "s.history_id = r.history_id AND s.lease_token = r.lease_token AND s.settlement = 'acked'",
      )}`,
  ),
  settlement_without_queue_message: check(
    "queue_settlement",
    { queue: "text", lease_token: "text", broker_message_id: "id" },
    "what a token settled is a message of that queue",
    (d) =>
      lacks(
        d,
        "queue_message",
        "q",
        "q.queue = r.queue AND q.history_id = r.history_id AND q.broker_message_id = r.broker_message_id",
      ),
  ),
  lease_without_queue: check("queue_lease", leaseKey, "a lease has its queue", (d) =>
    lacks(d, "queue", "q", "q.id = r.queue"),
  ),
  lease_without_member: check("queue_lease", leaseKey, "a lease is held by a member, former or not", (d) =>
    lacksMember(d, "r.holder_pubkey"),
  ),
  subscription_without_topic: check("topic_subscription", subscriptionKey, "a subscription has its topic", (d) =>
    lacks(d, "topic", "t", "t.name = r.topic"),
  ),
  subscription_without_member: check("topic_subscription", subscriptionKey, "a subscription has its member", (d) =>
    lacksMember(d, "r.member_pubkey"),
  ),
  presence_without_member: check(
    "presence_lease",
    { member_pubkey: "text", connection_id: "text" },
    "who is present is a member, former or not",
    (d) => lacksMember(d, "r.member_pubkey"),
  ),
  profile_without_member: check("member_profile", { member_pubkey: "text" }, "a profile has its member", (d) =>
    lacksMember(d, "r.member_pubkey"),
  ),
  fence_of_committed_id: check(
    "client_message_fence",
    fenceKey,
    "an id that its sender has fenced is not one that its sender has committed",
    (d) =>
      exists(
        d,
        "client_message_dedupe",
        "c",
        "c.client_message_id = r.client_message_id AND c.sender_pubkey = r.sender_pubkey",
      ),
    "MSG-7",
  ),
  fence_without_member: check("client_message_fence", fenceKey, "a fence was set by a member, former or not", (d) =>
    lacksMember(d, "r.sender_pubkey"),
  ),
  token_without_member: check("member_token", { id: "text" }, "a token speaks for a member, former or not", (d) =>
    lacksMember(d, "r.pubkey"),
  ),
  invite_without_member: check(
    "invite",
    { secret_hash: "bytes" },
    "an invite was made by a member, and used by one if at all",
    (d) => `${lacksMember(d, "r.created_by")} OR (r.used_by IS NOT NULL AND ${lacksMember(d, "r.used_by")})`,
  ),
  webhook_without_member: check("webhook", webhookKey, "a webhook was made by a member, former or not", (d) =>
    lacksMember(d, "r.created_by"),
  ),
  webhook_delivery_without_webhook: check(
    "webhook_delivery",
    webhookDeliveryKey,
    "a webhook's delivery has its webhook, wherever that is in history: it may go through history again",
    (d) => lacks(d, "webhook", "w", "w.incarnation = r.incarnation"),
    "MSG-22",
  ),
  webhook_delivery_without_history: check(
    "webhook_delivery",
    webhookDeliveryKey,
    "a webhook's delivery is of a message to a topic that was accepted; its history row goes with retention",
    (d) =>
      `${lacks(d, "mesh_history_counter", "c", "c.last_history_id >= r.history_id")}
       OR (${lacks(d, "mesh_housekeeping", "k", "k.removed_up_to >= r.history_id")} AND ${lacks(
         d,
         "message_history",
         "h",
         `h.history_id = r.history_id AND h.broker_message_id = r.broker_message_id AND h.destination_kind = 'topic'`,
       )})`,
    "MSG-22",
  ),
  webhook_cursor_ahead: check(
    "webhook",
    webhookKey,
    "no webhook is ahead of history",
    (d) => `r.written_up_to > 0 AND ${lacks(d, "mesh_history_counter", "c", "c.last_history_id >= r.written_up_to")}`,
    "MSG-22",
  ),
  history_counter_behind: check(
    "mesh_history_counter",
    {},
    "the counter of history is at least as far as history",
    (d) => exists(d, "message_history", "h", "h.history_id > r.last_history_id"),
    "MSG-6",
  ),
  search_cursor_ahead: check(
    "message_search_cursor",
    {},
    "the index of words is not ahead of history",
    (d) => `r.indexed_up_to > 0 AND ${lacks(d, "mesh_history_counter", "c", "c.last_history_id >= r.indexed_up_to")}`,
  ),
  rate_cursor_ahead: check(
    "rate_limit_counter_cursor",
    {},
    "the rate counters are not ahead of history",
    (d) => `r.counted_up_to > 0 AND ${lacks(d, "mesh_history_counter", "c", "c.last_history_id >= r.counted_up_to")}`,
  ),
  retention_cursor_ahead: check(
    "mesh_housekeeping",
    {},
    "retention is not ahead of history",
    (d) => `r.removed_up_to > 0 AND ${lacks(d, "mesh_history_counter", "c", "c.last_history_id >= r.removed_up_to")}`,
  ),
} satisfies Record<string, OrphanCheck>;

/** Every table whose rows belong to a mesh by their first column. */
export const tablesOfMeshes = [...tablesOf(orphanChecks), "member", "topic", "queue", "rate_limit_counter"];
