// That the ledger of the space objects to what must not be, shown by traces made by hand.
import { encodeCommit } from "@claudemesh/protocol/spaces/commit";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { beforeEach, expect, test } from "vitest";
import { type LogRow, SpaceLedger } from "./space-ledger.ts";

let ledger: SpaceLedger;
let nextSeq: number;

beforeEach(() => {
  ledger = new SpaceLedger();
  nextSeq = 1;
});

const set = (n: number): Operation => ({ op: "set", id: "e:0", value: { value: { a: n, m: n } } });
const stored = () => true;

function row(operations: readonly Operation[], more: Partial<Parameters<typeof encodeCommit>[0]> = {}): LogRow {
  const seq = nextSeq++;
  const commit = { localSeq: seq, reads: { confirmed: [], pending: [] }, operations, branch: "", ...more };
  const original = JSON.stringify(encodeCommit(commit));
  return { seq, branch: "", session_id: "s", local_seq: commit.localSeq, member_pubkey: "p", original };
}

const readOf = (seq: number) => ({
  reads: { confirmed: [{ id: "e:0", path: ["value", "a"], seq }], pending: [] },
});

test("commits whose reads were true are accepted, one after the other", () => {
  ledger.note(row([set(1)]), stored);
  ledger.note(row([set(2)], readOf(1)), stored);
  expect([ledger.seqOf(1), ledger.seqOf(2), ledger.model.lastSeq]).toEqual([1, 2, 2]);
});

test("a read that another write made stale is found, declared or not", () => {
  ledger.note(row([set(1)]), stored);
  ledger.note(row([set(2)]), stored);
  expect(() => ledger.note(row([set(3)], readOf(1)), stored)).toThrow(/not_serializable: .* is not what is there/);
  const seen = { exists: true, value: 1 };
  ledger.expect(4, {
    transaction: 1,
    branch: "",
    reads: [{ id: "e:0", branch: "", path: ["value", "a"], shallow: false, seen }],
  });
  nextSeq = 3;
  expect(() => ledger.note(row([set(4)]), stored)).toThrow(/not_serializable/);
});

test("a seq that is missing, a number used twice and a layer that was never accepted are found", () => {
  nextSeq = 2;
  expect(() => ledger.note(row([set(1)]), stored)).toThrow(/not_serializable: seq 2 came after 0/);
  nextSeq = 1;
  ledger.note(row([set(1)]), stored);
  expect(() => ledger.note(row([set(2)], { localSeq: 1 }), stored)).toThrow(/s\/1 was accepted twice/);
  nextSeq = 2;
  const pending = [{ id: "e:0", path: [], localSeq: 7, basisSeq: 1 }];
  expect(() => ledger.note(row([set(2)], { localSeq: 9, reads: { confirmed: [], pending } }), stored)).toThrow(
    /rests on 7/,
  );
});

test("a transaction that is accepted after its rejection, or twice, is found", () => {
  ledger.reject(1);
  expect(() => ledger.note(row([set(1)]), stored)).toThrow(/verdict_wrong/);
  ledger.expect(2, { transaction: 5, branch: "", reads: [] });
  ledger.expect(3, { transaction: 5, branch: "", reads: [] });
  nextSeq = ledger.model.lastSeq + 1;
  ledger.note(row([set(2)], { localSeq: 20 }), stored);
  expect(() => ledger.note(row([set(3)], { localSeq: 21 }), stored)).toThrow(/verdict_wrong: transaction 5/);
  expect(() => ledger.reject(2)).toThrow(/verdict_wrong/);
});

test("a commit without its message, and one message in two commits, are found", () => {
  const sends = [{ client_message_id: "space-1", destination: { kind: "topic" as const, ref: "t" }, body: "b" }];
  expect(() => ledger.note(row([set(1)], { sends }), () => false)).toThrow(/sends_torn/);
  const other = new SpaceLedger();
  nextSeq = 1;
  other.note(row([set(1)], { sends }), stored);
  expect(() => other.note(row([set(2)], { sends }), stored)).toThrow(/sends_torn: space-1 was carried by two/);
});
