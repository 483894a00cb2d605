// The bytes that members sign: the published ones, one label for each purpose, and one reading for each text.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AnnouncedFeatures } from "../features/features.ts";
import type { JsonObject } from "../json/strict-json.ts";
import {
  type ConnectionKind,
  connectionKinds,
  createMeshBytes,
  type HelloSession,
  helloBytes,
  httpProofBytes,
  joinBytes,
  operationBytes,
  proofBytes,
} from "./signing.ts";

type Fields = Readonly<Record<string, unknown>>;

const { signed }: { signed: { purpose: Purpose; fields: Fields; hex: string }[] } = JSON.parse(
  readFileSync(new URL("../../vectors/invites.json", import.meta.url), "utf8"),
);

const text = (value: unknown) => String(value);
const sessionOf = (fields: Fields): HelloSession => ({
  client_nonce: text(fields.client_nonce),
  broker_nonce: text(fields.broker_nonce),
  mesh_id: text(fields.mesh_id),
  broker_key: text(fields.broker_key),
});

const signers = {
  hello: (fields: Fields) =>
    helloBytes({ ...sessionOf(fields), pubkey: text(fields.pubkey), kind: fields.kind as ConnectionKind }),
  proof: (fields: Fields) => proofBytes({ ...sessionOf(fields), features: fields.features as AnnouncedFeatures }),
  "http-proof": ({ nonce, mesh_id, broker_key }: Fields) =>
    httpProofBytes({ nonce: text(nonce), mesh_id: text(mesh_id), broker_key: text(broker_key) }),
  operation: (fields: Fields) =>
    operationBytes({
      ...sessionOf(fields),
      operation: text(fields.operation),
      id: Number(fields.id),
      input: fields.input as JsonObject,
    }),
  join: ({ mesh_id, secret, name, pubkey }: Fields) =>
    joinBytes({ mesh_id: text(mesh_id), secret: text(secret), name: text(name), pubkey: text(pubkey) }),
  create: ({ name, owner_name, owner_pubkey }: Fields) =>
    createMeshBytes({ name: text(name), owner_name: text(owner_name), owner_pubkey: text(owner_pubkey) }),
};
type Purpose = keyof typeof signers;

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("the published bytes", () => {
  it.each(signed)("to sign for $purpose of $fields", ({ purpose, fields, hex: expected }) => {
    expect(hex(signers[purpose](fields))).toBe(expected);
  });

  it("cover every purpose", () => {
    expect(new Set(signed.map(({ purpose }) => purpose))).toEqual(new Set(Object.keys(signers)));
  });
});

// Few values, so that different fields often hold the same text and a wrong join would meet another.
const meshId = fc.constantFrom("018f3c1e-7b2a-7c3d-9e4f-5a6b7c8d9e0f", "01890a5d-ac96-774b-bcce-b302099a8057");
const name = fc.constantFrom("a", "b", "daemon", "claudemesh-join-1");
const pubkey = fc.constantFrom("0a".repeat(32), "0b".repeat(32));
const nonce = fc.constantFrom("0a".repeat(32), "0c".repeat(32));
const freeText = fc
  .array(fc.oneof(meshId, name, pubkey, fc.constantFrom("\0", "\0", "client", "claudemesh-hello-2")), { maxLength: 5 })
  .map((parts) => parts.join(""));
const session = { client_nonce: nonce, broker_nonce: nonce, mesh_id: meshId, broker_key: pubkey };
const freeObject = fc.record({ a: freeText, b: fc.record({ version: fc.integer({ min: 1, max: 2 }) }) });

const purposes: Readonly<Record<Purpose, fc.Arbitrary<Fields>>> = {
  hello: fc.record({ ...session, pubkey, kind: fc.constantFrom(...connectionKinds) }),
  proof: fc.record({ ...session, features: freeObject }),
  "http-proof": fc.record({ nonce, mesh_id: fc.oneof(meshId, fc.constant("")), broker_key: pubkey }),
  operation: fc.record({
    ...session,
    operation: fc.constantFrom("token.create", "invite.create"),
    id: fc.integer({ min: 1, max: 3 }),
    input: freeObject,
  }),
  join: fc.record({ mesh_id: meshId, secret: freeText, name, pubkey }),
  create: fc.record({ name, owner_name: name, owner_pubkey: pubkey }),
};
const anything = fc.oneof(
  ...(Object.keys(purposes) as Purpose[]).map((purpose) => purposes[purpose].map((fields) => ({ purpose, fields }))),
);

describe("what a member signs", () => {
  it("begins with a label that is the purpose's own", () => {
    const labels = signed.map(({ purpose, fields }) => {
      const [label = ""] = Buffer.from(signers[purpose](fields)).toString("utf8").split("\0");
      return `${purpose}: ${label}`;
    });
    expect(new Set(labels)).toEqual(
      new Set([
        "hello: claudemesh-hello-2",
        "proof: claudemesh-proof-2",
        "http-proof: claudemesh-http-proof-1",
        "operation: claudemesh-operation-1",
        "join: claudemesh-join-1",
        "create: claudemesh-create-1",
      ]),
    );
  });

  it("for one purpose and content is never good for another, even if the secret or the input is chosen to deceive", () => {
    const seen = new Map<string, string>();
    let met = 0;
    fc.assert(
      fc.property(anything, ({ purpose, fields }) => {
        const bytes = hex(signers[purpose](fields));
        const content = JSON.stringify([purpose, fields]);
        if (seen.has(bytes)) met += 1;
        expect(seen.get(bytes) ?? content).toBe(content);
        seen.set(bytes, content);
      }),
      { numRuns: 2000 },
    );
    expect(seen.size).toBeGreaterThan(300);
    expect(met).toBeGreaterThan(30);
  });

  it("changes with every field", () => {
    for (const { purpose, fields } of signed) {
      const original = hex(signers[purpose](fields));
      for (const field of Object.keys(fields)) {
        expect(hex(signers[purpose]({ ...fields, [field]: changed(fields[field]) })), field).not.toBe(original);
      }
    }
  });
});

function changed(value: unknown): unknown {
  if (typeof value === "number") return value + 1;
  return typeof value === "object" ? { ...value, more: 1 } : `${value}x`;
}
