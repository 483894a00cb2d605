// The claim decision: first, same, different, and never another owner's.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decideClaim, type StoredClaim } from "./claim.ts";

const left = Uint8Array.of(1, 2, 3);
const right = Uint8Array.of(1, 2, 4);

describe("a claim", () => {
  it("is the first where nothing is stored", () => {
    expect(decideClaim(undefined, { fingerprint: left })).toBe("first");
    expect(decideClaim(undefined, { fingerprint: left, owner: "a" })).toBe("first");
  });

  it("is the same again with the same fingerprint", () => {
    expect(decideClaim({ fingerprint: left }, { fingerprint: left.slice() })).toBe("same");
    expect(decideClaim({ fingerprint: left, owner: "a" }, { fingerprint: left.slice(), owner: "a" })).toBe("same");
  });

  it("is a conflict with another fingerprint", () => {
    expect(decideClaim({ fingerprint: left }, { fingerprint: right })).toBe("different");
    expect(decideClaim({ fingerprint: left }, { fingerprint: left.slice(0, 2) })).toBe("different");
    expect(decideClaim({ fingerprint: left, owner: "a" }, { fingerprint: right, owner: "a" })).toBe("different");
  });

  it("is another owner's whatever the content, so that no owner learns of another's send or suppresses it", () => {
    expect(decideClaim({ fingerprint: left, owner: "a" }, { fingerprint: left, owner: "b" })).toBe("owned_by_another");
    expect(decideClaim({ fingerprint: left, owner: "a" }, { fingerprint: right, owner: "b" })).toBe("owned_by_another");
    expect(decideClaim({ fingerprint: left, owner: "a" }, { fingerprint: left })).toBe("owned_by_another");
  });
});

describe("any sequence of claims on one key", () => {
  it("has one effect, whose content and owner decide every later answer", () => {
    const claim: fc.Arbitrary<StoredClaim> = fc.record({
      fingerprint: fc.constantFrom(left, right, Uint8Array.of()).map((bytes) => bytes.slice()),
      owner: fc.constantFrom("a", "b"),
    });
    const seen = { first: 0, same: 0, different: 0, owned_by_another: 0 };
    fc.assert(
      fc.property(fc.array(claim, { minLength: 1, maxLength: 8 }), (claims) => {
        let stored: StoredClaim | undefined;
        for (const offered of claims) {
          const decision = decideClaim(stored, offered);
          seen[decision] += 1;
          const winner = claims[0];
          if (stored === undefined) {
            expect(decision).toBe("first");
            stored = offered;
          } else if (offered.owner !== winner?.owner) {
            expect(decision).toBe("owned_by_another");
          } else {
            expect(decision).toBe(`${offered.fingerprint}` === `${winner?.fingerprint}` ? "same" : "different");
          }
        }
      }),
      { numRuns: 300 },
    );
    for (const [decision, count] of Object.entries(seen)) expect(count, decision).toBeGreaterThan(30);
  });
});
