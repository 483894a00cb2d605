import { describe, expect, it } from "vitest";
import { readMessageState } from "./message-state.ts";

const counts = { unsettled: 1, delivered: 1, expired: 0 };
const body = {
  broker_message_id: "b-1",
  client_message_id: "c-1",
  history_id: 7,
  destination: { kind: "topic", ref: "general" },
  sender_pubkey: "aa",
  accepted_at: 5,
  counts,
  deliveries: [
    { recipient_pubkey: "bb", state: "delivered", settled_at: 6 },
    { recipient_pubkey: "cc", state: "unsettled", settled_at: null },
  ],
  next_cursor: "cc",
};

describe("the broker's word on a message", () => {
  it("is read field by field, past what is not known here", () => {
    expect(readMessageState({ ...body, news: 1, deliveries: [...body.deliveries, { state: "eaten" }, null] })).toEqual({
      brokerMessageId: "b-1",
      acceptedAt: 5,
      counts,
      message: {
        clientMessageId: "c-1",
        historyId: 7,
        destination: { kind: "topic", ref: "general" },
        senderPubkey: "aa",
      },
      deliveries: [
        { recipientPubkey: "bb", state: "delivered", settledAt: 6 },
        { recipientPubkey: "cc", state: "unsettled", settledAt: undefined },
      ],
      nextCursor: "cc",
      queue: undefined,
    });
  });

  it("may be about a queue, or no more than numbers", () => {
    const { deliveries: _, next_cursor: __, ...queued } = body;
    expect(readMessageState({ ...queued, queue: { state: "acked", deliveries: 2, settled_at: 9 } })).toMatchObject({
      deliveries: [],
      nextCursor: undefined,
      queue: { state: "acked", deliveries: 2, settledAt: 9 },
    });
    expect(readMessageState({ broker_message_id: "b-1", accepted_at: 5, counts })).toMatchObject({
      message: undefined,
      counts,
    });
  });

  it.each(["broker_message_id", "accepted_at", "counts"])("is none without its %s", (field) => {
    expect(readMessageState({ ...body, [field]: undefined })).toBeUndefined();
  });

  it.each(["client_message_id", "history_id", "destination", "sender_pubkey"])(
    "tells nothing of the message itself without its %s",
    (field) => {
      expect(readMessageState({ ...body, [field]: undefined })?.message).toBeUndefined();
      expect(readMessageState({ ...body, destination: { kind: "moon", ref: "x" } })?.message).toBeUndefined();
    },
  );

  it.each([undefined, null, "text", [], { ...body, counts: { unsettled: "1" } }])("is none: %j", (value) => {
    expect(readMessageState(value)).toBeUndefined();
  });
});
