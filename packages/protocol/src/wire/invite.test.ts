// Invites as one line of text: the published ones, random ones there and back, and what damage does to them.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MeshError } from "../errors/errors.ts";
import { decodeInvite, encodeInvite, type Invite } from "./invite.ts";

interface Vectors {
  invites: { invite: Invite; text: string }[];
  read_only: { name: string; invite: Invite; text: string }[];
  refused: { name: string; text: string }[];
}

const vectors: Vectors = JSON.parse(readFileSync(new URL("../../vectors/invites.json", import.meta.url), "utf8"));

const refusal = expect.objectContaining({ name: "MeshError", code: "invalid_invite", status: 400 });
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const brokerUrl = fc
  .tuple(fc.constantFrom("ws", "wss", "http", "https"), fc.domain(), fc.integer({ min: 1, max: 65_535 }))
  .map(([scheme, host, port]) => `${scheme}://${host}:${port}`);
const digest = fc.stringMatching(/^[0-9a-f]{64}$/);
const invite: fc.Arbitrary<Invite> = fc.record(
  {
    broker: brokerUrl,
    mesh: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
    mesh_id: fc.uuid({ version: 7 }),
    secret: fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/),
    broker_key: digest,
    brokers: fc.array(brokerUrl, { minLength: 1, maxLength: 3 }),
    cert_sha256: digest,
  },
  { requiredKeys: ["broker", "mesh", "mesh_id", "secret"] },
);

function decodeOrRefuse(text: string): Invite | undefined {
  try {
    return decodeInvite(text);
  } catch (error) {
    if (error instanceof MeshError && error.code === "invalid_invite") return undefined;
    throw error;
  }
}

describe("an invite", () => {
  it.each(vectors.invites)("to $invite.mesh is written and read as published", ({ invite: value, text }) => {
    expect(encodeInvite(value)).toBe(text);
    expect(decodeInvite(text)).toEqual(value);
  });

  it.each(vectors.read_only)("is read: $name", ({ invite: value, text }) => {
    expect(decodeInvite(text)).toEqual(value);
  });

  it.each(vectors.refused)("is refused: $name", ({ text }) => {
    expect(() => decodeInvite(text)).toThrow(refusal);
  });

  it("comes back as it went, in characters that no shell or URL changes", () => {
    fc.assert(
      fc.property(invite, (value) => {
        const text = encodeInvite(value);
        expect(text).toMatch(/^cmi1\.[A-Za-z0-9_-]+$/);
        expect(decodeInvite(text)).toEqual(value);
      }),
      { numRuns: 200 },
    );
  });

  it("with one character changed is refused, or is visibly another invite", () => {
    const damage = fc.record({
      value: invite,
      at: fc.nat(),
      character: fc.constantFrom(...alphabet, " ", "=", "+", "/", "."),
    });
    let refused = 0;
    fc.assert(
      fc.property(damage, ({ value, at, character }) => {
        const text = encodeInvite(value);
        const index = at % text.length;
        fc.pre(text[index] !== character);
        const read = decodeOrRefuse(text.slice(0, index) + character + text.slice(index + 1));
        if (read === undefined) refused += 1;
        else expect(read).not.toEqual(value);
      }),
      { numRuns: 500 },
    );
    expect(refused).toBeGreaterThan(100);
  });

  it("cut short anywhere is refused", () => {
    const [{ text } = { text: "" }] = vectors.invites;
    expect(text.length).toBeGreaterThan(100);
    for (let length = 0; length < text.length; length++) {
      expect(decodeOrRefuse(text.slice(0, length)), `${length} characters`).toBeUndefined();
    }
  });

  it("tells people to copy it again, and nothing of the secret", () => {
    for (const { text, invite: value } of vectors.invites.filter(({ invite: it }) => it.secret.length > 8)) {
      let refused: unknown;
      try {
        decodeInvite(`${text}!`);
      } catch (error) {
        refused = error;
      }
      if (!(refused instanceof MeshError)) throw new Error("a damaged invite was read");
      expect(refused.message).toContain("copy the whole line again");
      expect(JSON.stringify(refused.toBody())).not.toContain(value.secret);
    }
  });
});
