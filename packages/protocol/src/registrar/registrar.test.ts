// The registrar's digests, signed bytes, texts and states: against the published vectors, by the source and by a second
// way that is written down here from the contract alone, and as properties.
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errorCatalogue } from "../errors/catalogue.ts";
import type { Sha256 } from "../messages/fingerprint.ts";
import { type ApprovalTerms, approvalBytes, storedApprovalBytes } from "./approval.ts";
import { digestInput, effectKey, lengthPrefixed, type ReplayIdentity, replayKey } from "./digests.ts";
import { type RegistrarErrorCode, registrarRefusal } from "./registrar-refusals.ts";
import { checkRegistrarText } from "./registrar-text.ts";
import {
  isCompensable,
  type RegistrationState,
  registrationState,
  registrationStates,
  registrationSteps,
} from "./registration-state.ts";

type DigestVector = {
  name: string;
  protocol_version: string;
  logical_request_key: string;
  operation: string;
  target: string;
  artifact_hash: string;
  binding: string;
  run_id: string;
  replay_preimage_hex?: string;
  replay_key: string;
  effect_key: string;
};
type Vectors = {
  digests: DigestVector[];
  public_key: string;
  approvals: {
    name: string;
    mesh_id: string;
    terms: ApprovalTerms;
    canonical: string;
    signature: string;
    signature_1: string;
  }[];
  refused_texts: { name: string; text_escaped: string }[];
};

const vectors: Vectors = JSON.parse(readFileSync(new URL("../../vectors/registrar.json", import.meta.url), "utf8"));

const sha256: Sha256 = {
  bytes: (data) => new Uint8Array(createHash("sha256").update(data).digest()),
  hex: (data) => createHash("sha256").update(data).digest("hex"),
};
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

const identityOf = (vector: DigestVector): ReplayIdentity => ({
  protocolVersion: vector.protocol_version,
  logicalRequestKey: vector.logical_request_key,
  operation: vector.operation,
  target: vector.target,
  artifactHash: vector.artifact_hash,
  binding: vector.binding,
  runId: vector.run_id,
});

function naivePrefixed(fields: string[]): Buffer {
  return Buffer.concat(
    fields.flatMap((field) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(Buffer.byteLength(field));
      return [length, Buffer.from(field)];
    }),
  );
}

describe("the published digests", () => {
  it.each(vectors.digests)("by the source: $name", (vector) => {
    expect(hex(replayKey(sha256, identityOf(vector)))).toBe(vector.replay_key);
    expect(hex(effectKey(sha256, identityOf(vector)))).toBe(vector.effect_key);
  });

  it.each(vectors.digests)("by hand: $name", (vector) => {
    const { operation, target, artifact_hash, binding, run_id } = vector;
    const fields = [vector.protocol_version, vector.logical_request_key, operation, target, artifact_hash];
    const preimage = naivePrefixed([...fields, binding, run_id]);
    if (vector.replay_preimage_hex !== undefined) expect(preimage.toString("hex")).toBe(vector.replay_preimage_hex);
    expect(sha256.hex(preimage)).toBe(vector.replay_key);
    expect(sha256.hex(naivePrefixed([operation, target, artifact_hash, run_id]))).toBe(vector.effect_key);
  });

  it("tell requests apart, and effects but for key and owner", () => {
    expect(new Set(vectors.digests.map((vector) => vector.replay_key)).size).toBe(vectors.digests.length);
    const [plain, otherKey, otherOwner, ...others] = vectors.digests.map((vector) => vector.effect_key);
    expect([otherKey, otherOwner]).toEqual([plain, plain]);
    expect(new Set([plain, ...others]).size).toBe(others.length + 1);
  });
});

describe("a digest", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 12 });
  const identity: fc.Arbitrary<ReplayIdentity> = fc.record({
    protocolVersion: text,
    logicalRequestKey: text,
    operation: text,
    target: text,
    artifactHash: text,
    binding: text,
    runId: text,
  });

  it("sees every field of its own, and nothing else: no attempt, no nonce, no time", () => {
    fc.assert(
      fc.property(
        identity,
        fc.constantFrom(...(Object.keys(identityOf(vectors.digests[0] as DigestVector)) as (keyof ReplayIdentity)[])),
        text,
        (one, field, other) => {
          fc.pre(one[field] !== other);
          const changed = { ...one, [field]: other };
          expect(hex(replayKey(sha256, changed))).not.toBe(hex(replayKey(sha256, one)));
          const inEffect = ["operation", "target", "artifactHash", "runId"].includes(field);
          expect(hex(effectKey(sha256, changed)) !== hex(effectKey(sha256, one))).toBe(inEffect);
          const more = { ...one, attemptId: other, nonce: other, expiresAtMs: 1 };
          expect(hex(replayKey(sha256, more))).toBe(hex(replayKey(sha256, one)));
        },
      ),
    );
  });

  it("has one list of fields for its bytes: where they are cut is part of them", () => {
    const fields = fc.array(fc.string({ unit: "binary", maxLength: 6 }), { maxLength: 4 });
    fc.assert(
      fc.property(fields, fields, (a, b) => {
        const same =
          a.length === b.length && a.every((field, at) => Buffer.from(field).equals(Buffer.from(b[at] ?? "")));
        expect(Buffer.from(lengthPrefixed(a)).equals(lengthPrefixed(b))).toBe(same);
      }),
    );
  });

  it("are over the same bytes where they come as text: plain fields of up to 127 characters", () => {
    const plain = fc.array(fc.string({ unit: "binary-ascii", maxLength: 127 }), { maxLength: 8 });
    const any = fc.array(fc.string({ unit: "binary", maxLength: 200 }), { maxLength: 8 });
    fc.assert(
      fc.property(fc.oneof(plain, any), (texts) => {
        const input = digestInput(texts);
        expect(Buffer.from(input as string).equals(lengthPrefixed(texts))).toBe(true);
      }),
    );
    expect(digestInput(["a".repeat(127)])).toBeTypeOf("string");
    expect(digestInput(["a".repeat(128)])).not.toBeTypeOf("string");
    expect(digestInput(["ä"])).not.toBeTypeOf("string");
  });
});

describe("an approval's signed bytes", () => {
  const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), Buffer.from(vectors.public_key, "hex")]);
  const key = createPublicKey({ key: spki, format: "der", type: "spki" });

  it.each(vectors.approvals)("are a label and the canonical JSON of the terms with the mesh: $name", (vector) => {
    const { mesh_id, terms, canonical, signature } = vector;
    const bytes = approvalBytes(mesh_id, terms);
    expect(Buffer.from(bytes).toString()).toBe(`claudemesh-approval-1\0${canonical}`);
    expect(verify(null, bytes, key, Buffer.from(signature, "hex"))).toBe(true);
    const shuffled = Object.fromEntries(Object.entries(terms).reverse()) as ApprovalTerms;
    expect(approvalBytes(mesh_id, shuffled)).toEqual(bytes);
    const withSignature = { ...terms, signature } as ApprovalTerms;
    expect(approvalBytes(mesh_id, withSignature)).toEqual(bytes);
    expect(storedApprovalBytes(2, mesh_id, terms)).toEqual(bytes);
  });

  it.each(vectors.approvals)("of an approval from before are those of its terms alone: $name", (vector) => {
    const bytes = storedApprovalBytes(1, vector.mesh_id, vector.terms);
    expect(verify(null, bytes, key, Buffer.from(vector.signature_1, "hex"))).toBe(true);
    expect(verify(null, bytes, key, Buffer.from(vector.signature, "hex"))).toBe(false);
  });

  it("change with every field", () => {
    const [vector] = vectors.approvals;
    if (vector === undefined) throw new Error("there are no vectors");
    const { mesh_id, terms } = vector;
    expect(approvalBytes(`${mesh_id}x`, terms)).not.toEqual(approvalBytes(mesh_id, terms));
    for (const field of Object.keys(terms) as (keyof ApprovalTerms)[]) {
      const value = terms[field];
      const other = typeof value === "number" ? value + 1 : `${value}x`;
      expect(approvalBytes(mesh_id, { ...terms, [field]: other }), field).not.toEqual(approvalBytes(mesh_id, terms));
    }
  });
});

describe("a text that is compared byte for byte", () => {
  it.each(vectors.refused_texts)("is refused with $name", ({ text_escaped }) => {
    const text = JSON.parse(`"${text_escaped}"`) as string;
    expect(() => checkRegistrarText({ fine: "x", target: text })).toThrow(
      expect.objectContaining({ status: 400, details: { field: "target" } }),
    );
  });

  it("passes in its composed form, whatever it says, and so does a field that is absent", () => {
    const noNul = fc.string({ unit: "binary" }).map((text) => text.normalize("NFC").replaceAll("\0", ""));
    fc.assert(
      fc.property(noNul, (text) => {
        fc.pre(text.isWellFormed() && text.normalize("NFC") === text);
        expect(() => checkRegistrarText({ text, absent: undefined })).not.toThrow();
      }),
    );
  });
});

describe("the states of a registration", () => {
  const rows = fc.record({
    consumed: fc.boolean(),
    verified: fc.constantFrom(undefined, "registered_closed" as const, "verify_failed" as const),
    compensated: fc.boolean(),
  });

  it("are known by rows, each of which is only ever added: from any state rows lead along the listed steps", () => {
    const reachable = (from: RegistrationState): Set<RegistrationState> => {
      const seen = new Set([from]);
      for (const state of seen) for (const next of registrationSteps[state]) seen.add(next);
      return seen;
    };
    fc.assert(
      fc.property(rows, (all) => {
        fc.pre(!all.compensated || all.verified === "verify_failed");
        const none = { consumed: false, verified: undefined, compensated: false };
        const inert = { ...none, consumed: true };
        const verified = { ...inert, verified: all.verified };
        const path = [none, inert, verified, { ...verified, compensated: all.compensated }].map(registrationState);
        for (const [at, state] of path.entries()) {
          for (const later of path.slice(at)) expect(reachable(state)).toContain(later);
        }
      }),
    );
  });

  it("never lead back to unknown, and end where nothing follows", () => {
    for (const state of registrationStates) expect(registrationSteps[state]).not.toContain("unknown");
    expect(registrationStates.filter((state) => registrationSteps[state].length === 0)).toEqual([
      "registered_closed",
      "compensated",
    ]);
    expect(registrationStates.filter(isCompensable)).toEqual(["verify_failed"]);
  });
});

describe("a refusal of the registrar", () => {
  it.each<[RegistrarErrorCode, number]>([
    ["replay_duplicate", 409],
    ["attempt_collision", 409],
    ["replay_nonce_consumed", 409],
    ["not_compensable", 409],
    ["nonce_unbound", 403],
    ["request_stale", 410],
    ["replay_surface_not_fit", 503],
  ])("%s has its status, and its name in capitals as code", (code, status) => {
    const refusal = registrarRefusal(code, { conflict: "effect_exists" });
    expect(refusal.toBody()).toMatchObject({ error: code, code: code.toUpperCase(), conflict: "effect_exists" });
    expect(refusal.status).toBe(status);
    expect(errorCatalogue[code].retryable).toBe(status === 503);
  });
});
