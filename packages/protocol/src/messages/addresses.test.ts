// Addresses, destinations, names and public keys: the published vectors, and random names in every form of address.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Address, checkDestination, type Destination, parseAddress } from "./addresses.ts";
import { limits } from "./limits.ts";
import { isMemberName, isName, isNewMemberName, isPublicKey } from "./names.ts";

interface Vectors {
  addresses: { to: string; address: Address }[];
  refused: string[];
  names: string[];
  not_names: string[];
  reserved_member_names: string[];
  public_keys: string[];
  not_public_keys: string[];
  destinations: { destination: Destination; valid: boolean }[];
}

const vectors: Vectors = JSON.parse(readFileSync(new URL("../../vectors/addresses.json", import.meta.url), "utf8"));

const refusal = (field: string) =>
  expect.objectContaining({ name: "MeshError", code: "invalid_address", status: 400, details: { field } });

describe("an address", () => {
  it.each(vectors.addresses)("$to", ({ to, address }) => {
    expect(parseAddress(to)).toEqual(address);
  });

  it.each(vectors.refused)("is never %j", (to) => {
    expect(() => parseAddress(to)).toThrow(refusal("to"));
  });

  it("names a topic or a queue by any name, and a member by any but self", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/), (name) => {
        const topic = { type: "resolved", destination: { kind: "topic", ref: name } };
        expect(parseAddress(`#${name}`)).toEqual(topic);
        expect(parseAddress(`topic:${name}`)).toEqual(topic);
        expect(parseAddress(`queue:${name}`)).toEqual({ type: "resolved", destination: { kind: "queue", ref: name } });
        if (isMemberName(name)) expect(parseAddress(`@${name}`)).toEqual({ type: "member_name", name });
      }),
      { numRuns: 100 },
    );
  });

  it("that is resolved is a destination that the wire takes, and is refused otherwise, whatever is tried", () => {
    const start = fc.constantFrom("#", "@", "topic:", "queue:", "dm:", "@self", "");
    const rest = fc.oneof(
      fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 64, maxLength: 64 }),
      fc.string({ unit: fc.constantFrom(..."aZ09._-"), maxLength: 70, size: "max" }),
      fc.string({ unit: fc.nat({ max: 0x100 }).map((code) => String.fromCharCode(code)), maxLength: 4 }),
    );
    let resolved = 0;
    let refused = 0;
    fc.assert(
      fc.property(start, rest, (prefix, text) => {
        let address: Address;
        try {
          address = parseAddress(prefix + text);
        } catch (error) {
          refused += 1;
          expect(error).toEqual(refusal("to"));
          return;
        }
        if (address.type !== "resolved") return;
        resolved += 1;
        const { destination } = address;
        expect(() => checkDestination(destination)).not.toThrow();
        expect(destination.ref.length).toBeLessThanOrEqual(limits.nameCharacters);
      }),
      { numRuns: 800 },
    );
    expect(resolved).toBeGreaterThan(50);
    expect(refused).toBeGreaterThan(50);
  });

  it("of every valid form is short enough for the schema of a send", () => {
    const longest = Math.max(...vectors.addresses.map(({ to }) => to.length), `topic:${"t".repeat(64)}`.length);
    expect(longest).toBeLessThanOrEqual(limits.addressCharacters);
  });
});

describe("a destination on the wire", () => {
  it.each(vectors.destinations)("$destination.kind $destination.ref: $valid", ({ destination, valid }) => {
    if (valid) expect(() => checkDestination(destination)).not.toThrow();
    else expect(() => checkDestination(destination)).toThrow(refusal("destination.ref"));
  });
});

describe("a name", () => {
  it.each(vectors.names)("may be %j", (text) => {
    expect(isName(text)).toBe(true);
  });

  it.each(vectors.not_names)("is never %j", (text) => {
    expect(isName(text)).toBe(false);
    expect(isMemberName(text)).toBe(false);
  });

  it.each(vectors.reserved_member_names)("of a member is never %j, which means the sender", (text) => {
    expect(isName(text)).toBe(true);
    expect(isMemberName(text)).toBe(false);
  });

  it("of a member may contain self", () => {
    for (const text of ["selfish", "myself", "self-1", "self.", "sel"]) expect(isMemberName(text)).toBe(true);
  });
});

describe("a public key", () => {
  it.each(vectors.public_keys)("is no new member's name, in whatever case: %j", (text) => {
    expect([text, text.toUpperCase()].some(isNewMemberName)).toBe(false);
    expect(isNewMemberName(text.slice(1))).toBe(true);
  });

  it.each(vectors.public_keys)("alone is no address, and the refusal says how to write one: %j", (text) => {
    expect(() => parseAddress(text)).toThrow(`write dm:${text}`);
  });

  it.each(vectors.public_keys)("may be %j", (text) => {
    expect(isPublicKey(text)).toBe(true);
  });

  it.each(vectors.not_public_keys)("is never %j", (text) => {
    expect(isPublicKey(text)).toBe(false);
  });
});
