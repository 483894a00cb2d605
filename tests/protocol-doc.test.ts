// docs/protocol.md is a contract for other implementations: every example on the page is what the code accepts.
import { readFileSync } from "node:fs";
import { createSchemaCompiler } from "@claudemesh/http/validation";
import { verifySignature } from "@claudemesh/members/credentials";
import { type AnnouncedFeatures, negotiate } from "@claudemesh/protocol/features";
import { type JsonObject, parseStrictJsonText } from "@claudemesh/protocol/json";
import { connectFrameSchema, helloFrameSchema } from "@claudemesh/protocol/wire/frames";
import { isSignedOperation, type OperationName, operations } from "@claudemesh/protocol/wire/operations";
import { type ConnectionKind, helloBytes, operationBytes, proofBytes } from "@claudemesh/protocol/wire/signing";
import { describe, expect, test } from "vitest";

const page = readFileSync(new URL("../docs/protocol.md", import.meta.url), "utf8");
const examples = [...page.matchAll(/```json (\S+)\n([^`]+)\n```/g)].map(([, kind = "", text = ""]) => ({
  kind,
  frame: parseStrictJsonText(text, { maxDepth: 64 }) as JsonObject,
}));
const compile = createSchemaCompiler();

/** The fields of pushes that are no messages. */
const pushes: Readonly<Record<string, readonly string[]>> = {
  member_revoked: ["pubkey"],
  destination_gone: ["kind", "ref"],
  peer_leave: ["pubkey"],
  brokers_changed: ["brokers"],
  sync: ["space", "sessionId", "branch", "fromSeq", "toSeq", "caughtUpLocalSeq", "upserts", "removes"],
  "session.revoked": ["space", "sessionId"],
  peer_join: ["pubkey", "name", "role", "connected_at", ...Object.keys(operations["profile.set"].input.properties)],
};

/** The connection that the page opens, to which all its signatures belong. */
function shownConnection() {
  const [connect = {}, proof = {}, hello = {}] = ["connect", "proof", "hello"].map(
    (kind) => examples.find((example) => example.kind === kind)?.frame as Readonly<Record<string, string>> | undefined,
  );
  const { nonce: client_nonce = "", mesh_id = "" } = connect;
  const { nonce: broker_nonce = "", broker_key = "" } = proof;
  return { session: { client_nonce, broker_nonce, mesh_id, broker_key }, pubkey: hello.pubkey ?? "", proof, hello };
}

describe("docs/protocol.md", () => {
  test("shows an example of every operation", () => {
    const shown = new Set(examples.map((example) => example.kind));
    expect(Object.keys(operations).filter((name) => !shown.has(name))).toEqual([]);
  });

  test("leaves no example unchecked", () => {
    const fences = page.match(/```json/g) ?? [];
    expect(examples.length).toBe(fences.length);
    expect(examples.length).toBeGreaterThan(20);
  });

  test.for(examples)("its $kind example is a frame that the code takes", ({ kind, frame }) => {
    expect(frame.type).toBe(kind);
    if (kind === "hello") {
      expect(compile(helloFrameSchema)(frame)).toBeUndefined();
    } else if (kind === "connect") {
      expect(compile(connectFrameSchema)(frame)).toBeUndefined();
    } else if (kind === "proof") {
      expect(negotiate(frame.features as never)).toMatchObject({ ok: true });
    } else if (kind === "reply") {
      expect(frame).toMatchObject({ id: expect.any(Number), status: expect.any(Number), body: expect.any(Object) });
    } else if (kind === "message") {
      const shape = [
        "accepted_at",
        "body",
        "broker_message_id",
        "client_message_id",
        "destination",
        "envelope_version",
      ];
      const rest = ["history_id", "meta", "priority", "reply_to_id", "sender_pubkey", "type"];
      expect(Object.keys(frame).sort()).toEqual([...shape, ...rest]);
    } else if (kind in pushes) {
      expect(Object.keys(frame).toSorted()).toEqual([...(pushes[kind] ?? []), "type"].toSorted());
    } else {
      const { type: _type, id, ...fields } = frame;
      const isSigned = isSignedOperation(kind as OperationName);
      const { signature, ...rest } = fields;
      const input = isSigned ? rest : fields;
      expect(id).toEqual(expect.any(Number));
      if (isSigned) {
        const { session, pubkey } = shownConnection();
        const bytes = operationBytes({ ...session, operation: kind, id: Number(id), input });
        expect(verifySignature(pubkey, bytes, String(signature)), kind).toBe(true);
      }
      expect(compile(operations[kind as OperationName].input)(input)).toBeUndefined();
    }
  });

  test("shows three frames of one connection, each signed by the key that it names", () => {
    const { session, pubkey, proof, hello } = shownConnection();
    const features = proof.features as unknown as AnnouncedFeatures;
    expect(verifySignature(session.broker_key, proofBytes({ ...session, features }), proof.signature ?? "")).toBe(true);
    const signed = helloBytes({ ...session, pubkey, kind: hello.kind as ConnectionKind });
    expect(verifySignature(pubkey, signed, hello.signature ?? "")).toBe(true);
    expect(hello).toMatchObject({ mesh_id: session.mesh_id });
  });

  test("lists every operation's route", () => {
    for (const [name, spec] of Object.entries(operations)) {
      if (!("http" in spec)) continue;
      expect(page, name).toContain(`\`${spec.http.method} ${spec.http.path}`);
    }
  });
});
