// Secrets and signatures, without a store.
import { describe, expect, test } from "vitest";
import { createPeerKeys } from "../../../../tests/support/peer-keys.ts";
import { hashSecret, mintSecret, sameSecret, verifySignature } from "./credentials.ts";

describe("a secret", () => {
  test("says what it is for and carries 256 random bits", () => {
    const secrets = Array.from({ length: 50 }, () => mintSecret("cmt"));
    expect(new Set(secrets).size).toBe(50);
    for (const secret of secrets) {
      expect(secret.startsWith("cmt_")).toBe(true);
      expect(Buffer.from(secret.slice(4), "base64url")).toHaveLength(32);
    }
  });

  test("is the same only as itself, whatever the lengths", () => {
    expect(sameSecret("cma_x", "cma_x")).toBe(true);
    for (const other of ["cma_y", "cma_", "", "cma_xx", "CMA_X"]) expect(sameSecret("cma_x", other)).toBe(false);
  });

  test("is hashed by SHA-256", () => {
    const known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    expect(Buffer.from(hashSecret("abc")).toString("hex")).toBe(known);
  });
});

describe("a signature", () => {
  test("holds for its key and its bytes alone", () => {
    const keys = createPeerKeys();
    const bytes = Buffer.from("what was signed");
    const signature = keys.sign(bytes);
    expect(verifySignature(keys.pubkey, bytes, signature)).toBe(true);
    expect(verifySignature(keys.pubkey, Buffer.from("what was signee"), signature)).toBe(false);
    expect(verifySignature(createPeerKeys().pubkey, bytes, signature)).toBe(false);
  });

  test("that is no signature, or a key that is no point of the curve, is false and not a failure", () => {
    const keys = createPeerKeys();
    const bytes = Buffer.from("x");
    for (const signature of ["", "00", "ff".repeat(64), "00".repeat(64), "not hex"]) {
      expect(verifySignature(keys.pubkey, bytes, signature)).toBe(false);
    }
    for (const pubkey of ["ff".repeat(32), "02".repeat(32)]) {
      expect(verifySignature(pubkey, bytes, keys.sign(bytes))).toBe(false);
    }
  });
});
