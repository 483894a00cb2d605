// The bytes that members sign: the published ones, one label for each purpose, and one reading for each text.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ConnectionKind, connectionKinds, createMeshBytes, helloBytes, joinBytes } from "./signing.ts";

type Fields = Readonly<Record<string, string>>;
type Purpose = "hello" | "join" | "create";

const { signed }: { signed: { purpose: Purpose; fields: Fields; hex: string }[] } = JSON.parse(
  readFileSync(new URL("../../vectors/invites.json", import.meta.url), "utf8"),
);

const signers: Readonly<Record<Purpose, (fields: Fields) => Uint8Array>> = {
  hello: ({ nonce = "", mesh_id = "", pubkey = "", kind }) =>
    helloBytes({ nonce, mesh_id, pubkey, kind: kind as ConnectionKind }),
  join: ({ mesh_id = "", secret = "", name = "", pubkey = "" }) => joinBytes({ mesh_id, secret, name, pubkey }),
  create: ({ name = "", owner_name = "", owner_pubkey = "" }) => createMeshBytes({ name, owner_name, owner_pubkey }),
};

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
const freeText = fc
  .array(fc.oneof(meshId, name, pubkey, fc.constantFrom("\0", "\0", "client", "claudemesh-hello-1")), { maxLength: 5 })
  .map((parts) => parts.join(""));

const purposes: Readonly<Record<Purpose, fc.Arbitrary<Fields>>> = {
  hello: fc.record({ nonce: freeText, mesh_id: meshId, pubkey, kind: fc.constantFrom(...connectionKinds) }),
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
      new Set(["hello: claudemesh-hello-1", "join: claudemesh-join-1", "create: claudemesh-create-1"]),
    );
  });

  it("for one purpose and content is never good for another, even if the nonce or the secret is chosen to deceive", () => {
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
        expect(hex(signers[purpose]({ ...fields, [field]: `${fields[field]}x` })), field).not.toBe(original);
      }
    }
  });
});
