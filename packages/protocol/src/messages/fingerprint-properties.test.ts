// What must hold of the fingerprint of any envelope: every field counts, and no two envelopes that pass the checks at
// the edge are joined to the same text. Published examples are in fingerprint.test.ts.
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MeshError } from "../errors/errors.ts";
import { type AcceptRequest, readAcceptRequest } from "./accept-request.ts";
import { destinationKinds } from "./addresses.ts";
import { type Envelope, envelopeVersions, type Meta, priorities, readMeta } from "./envelope.ts";
import { fingerprint, fingerprintPreimage, type Sha256, sameFingerprint } from "./fingerprint.ts";

const sha256: Sha256 = {
  bytes: (data) => new Uint8Array(createHash("sha256").update(data).digest()),
  hex: (data) => createHash("sha256").update(data).digest("hex"),
};

const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,12}$/);
const publicKey = fc.stringMatching(/^[0-9a-f]{64}$/);
const character = fc.oneof(
  fc.integer({ min: 0x01, max: 0xd7ff }),
  fc.integer({ min: 0xe000, max: 0x10ffff }),
  fc.constantFrom(0x22, 0x5c, 0x1f, 0x7f, 0x2028, 0xfb33, 0x1f600),
);
const text = fc.string({ unit: character.map((code) => String.fromCodePoint(code)), maxLength: 6 });
const meta = fc
  .array(
    fc.tuple(text, fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.array(text, { maxLength: 2 }))),
    {
      maxLength: 4,
    },
  )
  .map((members): Meta => Object.fromEntries(members.filter(([key]) => key !== "mentions")));

const envelope: fc.Arbitrary<Envelope> = fc.record({
  version: fc.constantFrom(...envelopeVersions),
  destination: fc.oneof(
    fc.record({ kind: fc.constantFrom("topic" as const, "queue" as const), ref: name }),
    fc.record({ kind: fc.constant("dm" as const), ref: publicKey }),
  ),
  replyToId: fc.option(fc.stringMatching(/^[\x21-\x7e]{1,12}$/), { nil: undefined }),
  priority: fc.constantFrom(...priorities),
  canonicalMeta: meta.map(readMeta),
  body: fc.uint8Array({ maxLength: 8 }),
});

/** The envelope with one field, and only it, taken from another one. */
const fieldSwaps: Record<string, (from: Envelope, to: Envelope) => Envelope> = {
  version: (from, to) => ({ ...to, version: from.version }),
  "destination kind": (from, to) => ({ ...to, destination: { ...to.destination, kind: from.destination.kind } }),
  "destination ref": (from, to) => ({ ...to, destination: { ...to.destination, ref: from.destination.ref } }),
  reply_to_id: (from, to) => ({ ...to, replyToId: from.replyToId }),
  priority: (from, to) => ({ ...to, priority: from.priority }),
  meta: (from, to) => ({ ...to, canonicalMeta: from.canonicalMeta }),
  body: (from, to) => ({ ...to, body: from.body }),
};

const pictureOf = (it: Envelope) => JSON.stringify({ ...it, replyToId: it.replyToId ?? null, body: [...it.body] });

describe("any envelope", () => {
  it.each(Object.entries(fieldSwaps))("has another fingerprint once its %s changes", (_field, swap) => {
    let changed = 0;
    fc.assert(
      fc.property(envelope, envelope, (original, other) => {
        const edited = swap(other, original);
        const isSame = pictureOf(edited) === pictureOf(original);
        if (!isSame) changed += 1;
        expect(sameFingerprint(fingerprint(sha256, original), fingerprint(sha256, edited))).toBe(isSame);
      }),
      { numRuns: 200 },
    );
    expect(changed).toBeGreaterThan(50);
  });

  it("has the same fingerprint each time", () => {
    fc.assert(
      fc.property(envelope, (it) => {
        expect(fingerprint(sha256, { ...it, body: it.body.slice() })).toEqual(fingerprint(sha256, it));
      }),
      { numRuns: 100 },
    );
  });

  it("has a fingerprint that depends on the value of its meta, not on its spelling", () => {
    fc.assert(
      fc.property(meta, (it) => {
        const reversed = Object.fromEntries(Object.entries(it).reverse());
        expect(readMeta(reversed)).toBe(readMeta(it));
      }),
      { numRuns: 200 },
    );
  });
});

/** Texts full of separators and of words that are fields elsewhere, so that wrong joins would meet. */
const field = fc
  .array(fc.constantFrom("\0", "a", "next", "now", "1", "topic", "dm", "ab".repeat(32)), { maxLength: 3 })
  .map((parts) => parts.join(""));
const candidate: fc.Arbitrary<AcceptRequest> = fc.record(
  {
    client_message_id: fc.constant("id"),
    envelope_version: fc.constantFrom(...envelopeVersions),
    destination: fc.record({ kind: fc.constantFrom(...destinationKinds), ref: field }),
    reply_to_id: field,
    priority: fc.constantFrom(...priorities),
    meta: fc.dictionary(field, fc.oneof(field, fc.array(field, { maxLength: 2 })), { maxKeys: 2 }),
    body: field,
  },
  { requiredKeys: ["client_message_id", "destination", "body"] },
);
/** A world so small that every request meets itself and its neighbours. */
const neighbour: fc.Arbitrary<AcceptRequest> = fc.record(
  {
    client_message_id: fc.constant("id"),
    destination: fc.record({ kind: fc.constantFrom("topic", "queue"), ref: fc.constantFrom("a", "now", "a\0now") }),
    reply_to_id: fc.constantFrom("a", "now", "a\0now", "\0now"),
    priority: fc.constantFrom("now", "next"),
    meta: fc.constantFrom<Meta[]>({}, { a: "now" }, { a: ["now"] }, { a: "\0" }),
    body: fc.constantFrom("", "a"),
  },
  { requiredKeys: ["client_message_id", "destination", "body"] },
);

function readOrRefuse(request: AcceptRequest): Envelope | undefined {
  try {
    return readAcceptRequest(request).envelope;
  } catch (error) {
    if (error instanceof MeshError && error.status === 400) return undefined;
    throw error;
  }
}

describe("the checks at the edge", () => {
  it("let through only requests whose seven parts can be told apart in the joined text", () => {
    let passed = 0;
    let refused = 0;
    fc.assert(
      fc.property(candidate, (request) => {
        const read = readOrRefuse(request);
        if (read === undefined) {
          refused += 1;
          return;
        }
        passed += 1;
        const { version, destination, replyToId, priority, canonicalMeta, body } = read;
        const parts = [version, destination.kind, destination.ref, replyToId ?? "", priority, canonicalMeta];
        expect(fingerprintPreimage(sha256, read).split("\0")).toEqual([...parts, sha256.hex(body)]);
      }),
      { numRuns: 2000 },
    );
    expect(passed).toBeGreaterThan(100);
    expect(refused).toBeGreaterThan(100);
  });

  it("let no two different requests through that are joined to the same text", () => {
    const seen = new Map<string, string>();
    let met = 0;
    fc.assert(
      fc.property(neighbour, (request) => {
        const read = readOrRefuse(request);
        if (read === undefined) return;
        const preimage = fingerprintPreimage(sha256, read);
        const picture = pictureOf(read);
        if (seen.has(preimage)) met += 1;
        expect(seen.get(preimage) ?? picture).toBe(picture);
        seen.set(preimage, picture);
      }),
      { numRuns: 2000 },
    );
    expect(seen.size).toBeGreaterThan(50);
    expect(met).toBeGreaterThan(100);
  });

  it("are needed: without them a zero character moves a boundary", () => {
    const left: Envelope = {
      version: "1",
      destination: { kind: "topic", ref: "a\0b" },
      replyToId: undefined,
      priority: "next",
      canonicalMeta: "",
      body: new Uint8Array(),
    };
    const right: Envelope = { ...left, destination: { kind: "topic", ref: "a" }, replyToId: "b\0" };
    expect(fingerprintPreimage(sha256, right)).toBe(fingerprintPreimage(sha256, left));
    for (const { destination, replyToId } of [left, right]) {
      const request = { client_message_id: "id", destination, body: "" };
      expect(() =>
        readAcceptRequest(replyToId === undefined ? request : { ...request, reply_to_id: replyToId }),
      ).toThrow(MeshError);
    }
  });
});
