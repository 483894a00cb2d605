// A change of the wire cannot slip by: the hash of everything that a broker checks requests against stands here, beside
// the protocol version that it belongs to.
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../canonical/canonical-json.ts";
import type { JsonValue } from "../json/strict-json.ts";
import {
  connectFrameSchema,
  connectPath,
  helloFrameSchema,
  protocolVersion,
  provePath,
  proveRequestSchema,
  requestIdSchema,
} from "./frames.ts";
import { createMeshRequestSchema, joinRequestSchema } from "./invite.ts";
import { operations } from "./operations.ts";

const recorded = {
  protocolVersion: 2,
  sha256: "b018577ea6b309a044933c20e9ce904f4369e437b7fe65958872610733c22fff",
};

const wire = {
  connect_path: connectPath,
  request_id: requestIdSchema,
  connect: connectFrameSchema,
  hello: helloFrameSchema,
  prove_path: provePath,
  prove: proveRequestSchema,
  create_mesh: createMeshRequestSchema,
  join: joinRequestSchema,
  operations,
};

const whatToDo = `The wire has changed: a schema, a route or the protocol version is not what was recorded.
- If a client of the recorded version can no longer talk to a broker with this change (a field that became required, a
  form that became narrower, an operation that went away or means something else), raise protocolVersion in frames.ts.
- If it can (a new operation, a new optional field), keep the version.
- Then describe the change in docs/protocol.md, and record the new version and hash in protocol-version.test.ts.`;

describe("the wire", () => {
  it("is the one that was recorded with this protocol version", () => {
    // By way of JSON text, because the constants are read-only and shared.
    const text = canonicalJson(JSON.parse(JSON.stringify(wire)) as JsonValue);
    const actual = { protocolVersion, sha256: createHash("sha256").update(text).digest("hex") };
    expect(actual, whatToDo).toEqual(recorded);
  });
});
