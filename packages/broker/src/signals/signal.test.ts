// The text of signals between brokers: what is written is read, and nothing else does harm.
import { createHmac, createSecretKey } from "node:crypto";
import { describe, expect, test } from "vitest";
import { decodeSignals, encodeSignals, type Signal } from "./signal.ts";

const signals: Signal[] = [
  { type: "deliveries", meshId: "mesh-1", recipients: ["a", "b"] },
  { type: "daemon_connected", meshId: "mesh-1", pubkey: "a", stamp: "1" },
  { type: "daemon_offered", meshId: "mesh-1", pubkey: "a", stamp: "2" },
  { type: "daemon_refused", meshId: "mesh-1", pubkey: "a", stamp: "2" },
  { type: "member_revoked", meshId: "mesh-1", pubkey: "a" },
  { type: "presence_changed", meshId: "mesh-1" },
  { type: "destination_gone", meshId: "mesh-1", kind: "topic", ref: "news" },
  { type: "destination_gone", meshId: "mesh-1", kind: "topic", ref: "news", pubkey: "bob" },
  { type: "space_changed", meshId: "mesh-1", spaceId: "plan", seq: 7 },
  { type: "session_taken", meshId: "mesh-1", spaceId: "plan", sessionId: "s", epoch: 2 },
];

const secret = createSecretKey(Buffer.from("known to the brokers of one store"));
const read = (text: string) => decodeSignals(text, secret);
/** Signed, whatever it says. */
const signed = (text: string) => `${createHmac("sha256", secret).update(text).digest("hex")} ${text}`;

describe("signals", () => {
  test("are read as they were written", () => {
    const message = { from: "broker-1", signals };
    expect(read(encodeSignals(message, secret))).toEqual(message);
  });

  test("of types that this version does not know, or without what they need, are passed over", () => {
    const strange = [
      null,
      7,
      "x",
      {},
      { type: "moved", meshId: "mesh-1" },
      { type: "deliveries", meshId: "mesh-1" },
      { type: "deliveries", meshId: "mesh-1", recipients: [1] },
      { type: "deliveries", recipients: [] },
      { type: "daemon_connected", meshId: "mesh-1", pubkey: "a" },
      { type: "daemon_offered", meshId: "mesh-1", pubkey: "a" },
      { type: "member_revoked", meshId: "mesh-1" },
      { type: "destination_gone", meshId: "mesh-1", kind: "topic" },
      { type: "destination_gone", meshId: "mesh-1", kind: "house", ref: "news" },
      { type: "space_changed", meshId: "mesh-1", seq: 7 },
      { type: "space_changed", meshId: "mesh-1", spaceId: "plan", seq: "7" },
      { type: "session_taken", meshId: "mesh-1", spaceId: "plan", sessionId: "s" },
    ];
    const text = JSON.stringify({ from: "broker-1", signals: [...strange, ...signals], more: 1 });
    expect(read(signed(text))).toEqual({ from: "broker-1", signals });
  });

  test.each(["", "hello", "null", "[]", "{}", '{"from":1,"signals":[]}', '{"from":"x"}', '{"from":"x","signals":{}}'])(
    "%j is no message of ours, signed or not",
    (text) => expect(read(signed(text))).toBeUndefined(),
  );

  test("that are not signed, signed with another store's secret, or changed since, are not ours", () => {
    const message = { from: "broker-1", signals };
    const text = encodeSignals(message, secret);
    expect(read(JSON.stringify(message))).toBeUndefined();
    expect(read(encodeSignals(message, createSecretKey(Buffer.from("another store"))))).toBeUndefined();
    expect(read(text.replace("broker-1", "broker-2"))).toBeUndefined();
    expect(read(text.toUpperCase())).toBeUndefined();
    expect(read(text.slice(1))).toBeUndefined();
  });
});
