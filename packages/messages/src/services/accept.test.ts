// What a look-up counts for that was begun before the sender was known for certain.
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { expect, test } from "vitest";
import type { OfferedSend, StoredAccept } from "../ports.ts";
import { type AcceptPorts, acceptMessage, beginLookUp, fingerprintOf } from "./accept.ts";

const sender = { meshId: "mesh-1", pubkey: "a".repeat(64) };
const request: AcceptRequest = { client_message_id: "m1", destination: { kind: "topic", ref: "news" }, body: "hello" };
const minutesMs = 60_000;

function start() {
  let nowMs = 1_000;
  let stored: StoredAccept | undefined;
  const lookedUp: string[] = [];
  const offered: OfferedSend[] = [];
  const ports: AcceptPorts = {
    store: {
      findAccepted: async (meshId, id) => {
        lookedUp.push(`${meshId} ${id}`);
        return stored;
      },
      accept: async (send) => {
        offered.push(send);
        return {
          result: send.isOutdated() ? { type: "outdated" } : { type: "refused", code: "not_subscribed" },
          recipients: [],
        };
      },
    },
    nowMs: () => nowMs,
    nextId: () => "b1",
    inlineBytes: 1_024,
    takesUnsealed: async () => true,
    dedupeRetentionMs: undefined,
    afterLookUp: () => undefined,
    onAccepted: () => undefined,
  };
  return {
    ports,
    lookedUp,
    offered,
    passMs: (ms: number) => {
      nowMs += ms;
    },
    store: (row: StoredAccept) => {
      stored = row;
    },
  };
}

test("a look-up that was begun early is the only one, and answers a retry", async () => {
  const { ports, lookedUp, offered, store } = start();
  await acceptMessage(ports, sender, request);
  const [{ envelope } = { envelope: undefined }] = offered;
  if (envelope === undefined) throw new Error("nothing was offered");
  const row = { brokerMessageId: "b0", historyId: 7, senderPubkey: sender.pubkey, historyAvailable: true };
  store({ ...row, fingerprint: fingerprintOf(envelope), firstSeenAtMs: 1 });
  lookedUp.length = 0;
  const early = beginLookUp(ports, sender.meshId, "m1");
  expect(await acceptMessage(ports, sender, request, early)).toMatchObject({ type: "duplicate", historyId: 7 });
  expect(lookedUp).toEqual(["mesh-1 m1"]);
  expect(offered).toHaveLength(1);
});

test("a look-up of another id or of another mesh counts for nothing", async () => {
  const { ports, lookedUp } = start();
  for (const [meshId, id] of [
    ["mesh-2", "m1"],
    ["mesh-1", "m2"],
  ] as const) {
    lookedUp.length = 0;
    await acceptMessage(ports, sender, request, beginLookUp(ports, meshId, id));
    expect(lookedUp).toEqual([`${meshId} ${id}`, "mesh-1 m1"]);
  }
});

test("a send is too late when its early look-up is too long ago", async () => {
  const { ports, passMs } = start();
  const early = beginLookUp(ports, sender.meshId, "m1");
  passMs(5 * minutesMs);
  expect(await acceptMessage(ports, sender, request, early)).toMatchObject({ type: "refused" });
  passMs(1);
  expect(await acceptMessage(ports, sender, request, early)).toEqual({ type: "outdated" });
});
