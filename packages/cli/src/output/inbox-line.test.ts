// What people read about how a message came: a direct message that was not sealed, and one that was tampered with.
import type { InboxItem } from "@claudemesh/client/daemon";
import { expect, it } from "vitest";
import { eventLine } from "./event-line.ts";
import { inboxLine } from "./inbox-line.ts";

const item: InboxItem = {
  id: "01K9ZB4A000000000000000000",
  client_message_id: "m-1",
  broker_message_id: "b-1",
  history_id: 1,
  mesh: "acme",
  topic: null,
  sender_pubkey: "ab".repeat(32),
  sender_name: "bob",
  body: "hello",
  sealed: true,
  meta: null,
  priority: "next",
  reply_to_id: null,
  received_at: 1_763_600_000_000,
  read_at: null,
};
const lines = (change: Partial<InboxItem>) => [
  inboxLine({ ...item, ...change }, undefined),
  eventLine({ kind: "message", id: item.id, data: { ...item, ...change } }, undefined),
];

it("marks a direct message that was not sealed, and no other", () => {
  for (const line of lines({ sealed: false })) expect(line).toContain("dm, NOT SEALED  bob  hello");
  for (const line of lines({})) expect(line).toContain("dm  bob  hello");
  // Received before this was recorded.
  for (const line of lines({ sealed: null })) expect(line).toContain("dm  bob  hello");
  for (const line of lines({ topic: "news", sealed: false })) expect(line).toContain("#news  bob  hello");
});

it("says of a message that is not shown why it is not", () => {
  for (const line of lines({ body: null, unreadable: true })) expect(line).toContain("not readable with this member's");
  for (const line of lines({ body: null, unreadable: "relabelled" })) expect(line).toContain("do not trust it");
});
