// A commit's wire form: what reading refuses and where, the way there and back, and which commits are the same.
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../json/strict-json.ts";
import { type ClientCommit, canonicalCommitPayload, type EncodedCommit, encodeCommit, readCommit } from "./commit.ts";
import { spaceLimits } from "./entity.ts";

const encoded = {
  localSeq: 3,
  reads: {
    confirmed: [{ id: "task:1", path: ["value"], seq: 5, branch: "draft", shallow: true }],
    pending: [{ id: "task:2", path: [], localSeq: 2, basisSeq: 4 }],
  },
  operations: [
    { op: "set", id: "task:1", value: { value: { "/": { "bigint@1": "5" } } } },
    { op: "delete", id: "task:2" },
    {
      op: "patch",
      id: "task:3",
      patches: [
        { op: "add", path: "/a", value: { "/": { "bytes@1": "AQ" } } },
        { op: "replace", path: "/a", value: { "/": { "undefined@1": null } } },
        { op: "remove", path: "/a" },
        { op: "move", from: "/a", path: "/b" },
        { op: "test", path: "/a", value: { "/": { "object@1": 1 } } },
        { op: "splice", path: "/a", index: 0, remove: 1, add: [{ "/": { "bigint@1": "7" } }] },
      ],
    },
  ],
  sends: [{ client_message_id: "m1", destination: { kind: "topic", ref: "builds" }, body: "done" }],
  branch: "draft",
  merge: { sourceBranch: "draft", sourceSeq: 5, baseBranch: "", baseSeq: 1 },
  codeCID: "bafy",
  invocation: { sig: "00" },
} satisfies EncodedCommit;

const minimal = (operations: unknown[]): EncodedCommit =>
  ({ localSeq: 1, reads: { confirmed: [], pending: [] }, operations }) as EncodedCommit;
const patching = (...patches: unknown[]) => minimal([{ op: "patch", id: "task:1", patches }]);

describe("a commit", () => {
  it("is read from its wire form with its values decoded, and written back", () => {
    const commit = readCommit(encoded);
    const operations: ClientCommit["operations"] = [
      { op: "set", id: "task:1", value: { value: 5n } },
      { op: "delete", id: "task:2" },
      {
        op: "patch",
        id: "task:3",
        patches: [
          { op: "add", path: "/a", value: new Uint8Array([1]) },
          { op: "replace", path: "/a", value: undefined },
          { op: "remove", path: "/a" },
          { op: "move", from: "/a", path: "/b" },
          { op: "test", path: "/a", value: { "/": 1 } },
          { op: "splice", path: "/a", index: 0, remove: 1, add: [7n] },
        ],
      },
    ];
    expect(commit).toEqual({ ...encoded, operations });
    expect(encodeCommit(commit)).toEqual(encoded);
    expect(readCommit(minimal([{ op: "delete", id: "task:1" }]))).toEqual(minimal([{ op: "delete", id: "task:1" }]));
  });

  it.each<[string, EncodedCommit, { code: string; field: string }]>([
    ["nothing to do", minimal([]), { code: "invalid_request", field: "operations" }],
    [
      "an id without a scheme",
      minimal([{ op: "delete", id: "task" }]),
      { code: "invalid_request", field: "operations.0.id" },
    ],
    [
      "a set without a value",
      minimal([{ op: "set", id: "t:1" }]),
      { code: "invalid_request", field: "operations.0.value" },
    ],
    [
      "a delete with a value",
      minimal([{ op: "delete", id: "t:1", value: {} }]),
      { code: "unknown_field", field: "operations.0.value" },
    ],
    [
      "a document that is an escaped leaf",
      minimal([{ op: "set", id: "t:1", value: { "/": { "bigint@1": "5" } } }]),
      { code: "invalid_request", field: "operations.0.value" },
    ],
    [
      "a document over its limit",
      minimal([{ op: "set", id: "t:1", value: { a: "x".repeat(spaceLimits.documentBytes) } }]),
      { code: "payload_too_large", field: "operations.0.value" },
    ],
    ["a path that is no pointer", patching({ op: "remove", path: "a" }), field("operations.0.patches.0.path")],
    [
      "a source that is no pointer",
      patching({ op: "move", from: "a", path: "" }),
      field("operations.0.patches.0.from"),
    ],
    ["a remove with a value", patching({ op: "remove", path: "", value: 1 }), unknown("operations.0.patches.0.value")],
    ["an add without a value", patching({ op: "add", path: "" }), field("operations.0.patches.0.value")],
    [
      "a splice without items",
      patching({ op: "splice", path: "", index: 0, remove: 0 }),
      field("operations.0.patches.0.add"),
    ],
    [
      "an unknown tag",
      patching({ op: "add", path: "", value: { "/": { "x@1": 1 } } }),
      field("operations.0.patches.0.value"),
    ],
    [
      "a number that is none",
      patching({ op: "splice", path: "/a", index: 0, remove: 0, add: [1, 1e300] }),
      { code: "number_out_of_range", field: "operations.0.patches.0.add.1" },
    ],
    [
      "more patches than a commit may have",
      patching(...Array.from({ length: spaceLimits.patchesPerCommit + 1 }, () => ({ op: "remove", path: "/a" }))),
      field("operations"),
    ],
    ["a pending read of itself", { ...encoded, localSeq: 2 } as EncodedCommit, field("reads.pending.0.localSeq")],
  ])("with %s is refused, and the field is named", (_what, commit, { code, field: name }) => {
    let refusal: unknown;
    try {
      readCommit(commit);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toMatchObject({ code, details: { field: name } });
  });

  it("that only sends is one", () => {
    expect(readCommit({ ...minimal([]), sends: encoded.sends })).toMatchObject({ operations: [] });
  });
});

function field(name: string) {
  return { code: "invalid_request", field: name };
}

function unknown(name: string) {
  return { code: "unknown_field", field: name };
}

describe("the canonical payload", () => {
  const payloadOf = (change: { [key: string]: JsonValue }) =>
    canonicalCommitPayload({ ...encoded, ...change } as unknown as EncodedCommit);

  it("is the same in whatever order the fields came, and whatever the invocation", () => {
    const { invocation: _, ...rest } = encoded;
    const reversed = Object.fromEntries(Object.entries(rest).reverse()) as unknown as EncodedCommit;
    expect(canonicalCommitPayload(reversed)).toBe(canonicalCommitPayload(encoded));
    expect(payloadOf({ invocation: { sig: "other" } })).toBe(canonicalCommitPayload(encoded));
  });

  it("differs with everything else", () => {
    const { branch: _, ...withoutBranch } = encoded;
    const payloads = [
      canonicalCommitPayload(encoded),
      canonicalCommitPayload(withoutBranch),
      payloadOf({ localSeq: 4 }),
      payloadOf({ codeCID: "other" }),
      payloadOf({ sends: [] }),
      payloadOf({ operations: [{ op: "delete", id: "task:1" }] }),
      payloadOf({ reads: { confirmed: [], pending: [] } }),
    ];
    expect(new Set(payloads).size).toBe(payloads.length);
  });
});
