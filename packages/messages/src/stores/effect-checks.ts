// The rules of the orphan check that tie the effects of one accept together: id, message, history row, deliveries and
// mentions.
import { exists, lacks } from "@claudemesh/storage/row-rules";
import {
  check,
  clockMarginDays,
  type Dialect,
  hasId,
  hasMessage,
  historyKey,
  lacksMember,
  type OrphanCheck,
} from "./orphan-rule.ts";

/** By the clock of the broker that forgets. */
const rememberedDaysMin = 7;

const dedupeKey = { client_message_id: "text" } as const;
const messageKey = { id: "id" } as const;
const deliveryKey = { history_id: "integer", recipient_pubkey: "text" } as const;

/** Once an id is forgotten, deliveries go before their message: then some may be missing. */
const lacksDelivery = (d: Dialect) =>
  `${hasId(d, "r.id")} AND ${exists(
    d,
    "topic_subscription",
    "s",
    `s.topic = r.topic AND s.member_pubkey <> r.sender_pubkey
     AND s.subscribed_at < ${d.daysBefore("r.created_at", clockMarginDays)}
     AND ${exists(d, "member", "m", "m.pubkey = s.member_pubkey AND m.revoked_at IS NULL")}
     AND ${lacks(d, "delivery_queue", "q", "q.history_id = r.history_id AND q.recipient_pubkey = s.member_pubkey")}`,
  )}`;

const lacksMention = (d: Dialect) =>
  `EXISTS (SELECT 1 FROM ${d.mentionsOfMessage} WHERE ${lacks(
    d,
    "mention_index",
    "i",
    "i.mentioned_pubkey = j.value AND i.history_id = r.history_id",
  )})`;

export const effectChecks = {
  dedupe_without_message: check(
    "client_message_dedupe",
    dedupeKey,
    "an id whose message is said to be available has it",
    (d) => `NOT ${d.isFalse("r.history_available")} AND NOT ${hasMessage(d)}`,
    "MSG-2",
  ),
  dedupe_denies_message: check(
    "client_message_dedupe",
    dedupeKey,
    "an id whose message is said to be removed has none",
    (d) => `${d.isFalse("r.history_available")} AND ${hasMessage(d)}`,
    "MSG-19",
  ),
  dedupe_without_history: check(
    "client_message_dedupe",
    dedupeKey,
    "an id has its history row, with the same sender and destination, for as long as it is remembered",
    (d) =>
      lacks(
        d,
        "message_history",
        "h",
        `${d.historyOfDedupe} AND h.client_message_id = r.client_message_id AND h.sender_pubkey = r.sender_pubkey
         AND h.destination_kind = r.destination_kind AND h.destination_ref = r.destination_ref`,
      ),
    "MSG-19",
  ),
  history_without_dedupe: check(
    "message_history",
    historyKey,
    "what was accepted within the last six days has its id",
    (d) => `r.accepted_at > ${d.daysAgo(rememberedDaysMin - clockMarginDays)} AND NOT ${hasId(d)}`,
    "MSG-2",
  ),
  history_of_nothing: check(
    "message_history",
    historyKey,
    "a history row goes with the last of its message and its id",
    (d) => `NOT ${hasMessage(d)} AND NOT ${hasId(d)}`,
    "MSG-19",
  ),
  history_without_member: check("message_history", historyKey, "what was accepted is a member's, former or not", (d) =>
    lacksMember(d, "r.sender_pubkey"),
  ),
  history_beyond_counter: check(
    "message_history",
    historyKey,
    "a mesh with history has its counter, which is at least as far",
    (d) => lacks(d, "mesh_history_counter", "c", "c.last_history_id >= r.history_id"),
    "MSG-6",
  ),
  direct_message_without_delivery: check(
    "message_history",
    historyKey,
    "a direct message has a delivery to whom it is addressed",
    (d) =>
      `r.destination_kind = 'dm' AND ${lacks(
        d,
        "delivery_queue",
        "q",
        "q.history_id = r.history_id AND q.recipient_pubkey = r.destination_ref",
      )}`,
    "MSG-2",
  ),
  queued_history_without_queue_message: check(
    "message_history",
    historyKey,
    "a message to a queue has its row in that queue",
    (d) =>
      `r.destination_kind = 'queue' AND ${lacks(
        d,
        "queue_message",
        "q",
        "q.queue = r.destination_ref AND q.history_id = r.history_id",
      )}`,
    "MSG-2",
  ),
  topic_message_without_history: check(
    "topic_message",
    messageKey,
    "a message to a topic has its history row",
    (d) =>
      lacks(
        d,
        "message_history",
        "h",
        `h.history_id = r.history_id AND h.broker_message_id = r.id AND h.client_message_id = r.client_message_id
         AND h.sender_pubkey = r.sender_pubkey AND h.destination_kind = 'topic' AND h.destination_ref = r.topic`,
      ),
    "MSG-2",
  ),
  topic_message_passed_over: check(
    "topic_message",
    messageKey,
    "no message to a topic stands where retention has been",
    (d) => exists(d, "mesh_housekeeping", "k", "k.removed_up_to >= r.history_id"),
    "MSG-19",
  ),
  message_queue_without_history: check(
    "message_queue",
    messageKey,
    "a direct message or one to a queue has its history row",
    (d) =>
      lacks(
        d,
        "message_history",
        "h",
        `h.history_id = r.history_id AND h.broker_message_id = r.id AND h.client_message_id = r.client_message_id
         AND h.sender_pubkey = r.sender_pubkey AND h.destination_kind = r.destination_kind
         AND h.destination_ref = r.destination_ref`,
      ),
    "MSG-2",
  ),
  message_queue_passed_over: check(
    "message_queue",
    messageKey,
    "no direct message and none to a queue stands where retention has been",
    (d) => exists(d, "mesh_housekeeping", "k", "k.removed_up_to >= r.history_id"),
    "MSG-19",
  ),
  topic_message_without_delivery: {
    ...check(
      "topic_message",
      messageKey,
      "a message to a topic has a delivery to every member who had subscribed a day before, its sender aside",
      lacksDelivery,
      "MSG-2",
    ),
    // One row is as much to look at as its topic has subscribers.
    rowsPerPage: 25,
  },
  topic_message_without_mention: check(
    "topic_message",
    messageKey,
    "a message to a topic is found by every member that it mentions",
    lacksMention,
    "MSG-2",
  ),
  message_queue_without_mention: check(
    "message_queue",
    messageKey,
    "a direct message or one to a queue is found by every member that it mentions",
    lacksMention,
    "MSG-2",
  ),
  delivery_without_history: check(
    "delivery_queue",
    deliveryKey,
    "a delivery has its history row",
    (d) =>
      lacks(d, "message_history", "h", "h.history_id = r.history_id AND h.broker_message_id = r.broker_message_id"),
    "MSG-2",
  ),
  delivery_not_addressed: check(
    "delivery_queue",
    deliveryKey,
    "a delivery goes to whom its message is addressed, and none comes of a queue",
    (d) =>
      exists(
        d,
        "message_history",
        "h",
        `h.history_id = r.history_id AND (h.destination_kind = 'queue'
         OR (h.destination_kind = 'dm' AND h.destination_ref <> r.recipient_pubkey))`,
      ),
    "MSG-14",
  ),
  delivery_without_member: check("delivery_queue", deliveryKey, "a delivery goes to a member, former or not", (d) =>
    lacksMember(d, "r.recipient_pubkey"),
  ),
  unsettled_delivery_without_message: check(
    "delivery_queue",
    deliveryKey,
    "a delivery that is not settled has its message",
    (d) => `r.settled_at IS NULL AND NOT ${hasMessage(d)}`,
    "MSG-19",
  ),
  mention_without_message: check(
    "mention_index",
    { mentioned_pubkey: "text", history_id: "integer" },
    "a mention has its message and its history row",
    (d) =>
      `NOT ${hasMessage(d)} OR ${lacks(
        d,
        "message_history",
        "h",
        "h.history_id = r.history_id AND h.broker_message_id = r.broker_message_id",
      )}`,
    "MSG-2",
  ),
} satisfies Record<string, OrphanCheck>;
