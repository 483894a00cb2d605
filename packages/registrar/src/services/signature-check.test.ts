// What is remembered of a signature is only that exactly it was good.
import { generateKeyPairSync, sign } from "node:crypto";
import { expect, test } from "vitest";
import { createSignatureCheck } from "./signature-check.ts";

function createKey() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const pubkey = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
  return { pubkey, sign: (bytes: Uint8Array) => sign(null, bytes, privateKey).toString("hex") };
}

test("a signature that was good is good again, and nothing that differs from it is", async () => {
  const check = createSignatureCheck();
  const [mine, other] = [createKey(), createKey()];
  const bytes = Buffer.from("terms");
  const signature = mine.sign(bytes);
  for (let round = 0; round < 2; round++) {
    expect(await check(mine.pubkey, bytes, signature)).toBe(true);
    expect(await check(other.pubkey, bytes, signature)).toBe(false);
    expect(await check(mine.pubkey, Buffer.from("other terms"), signature)).toBe(false);
    expect(await check(mine.pubkey, bytes, other.sign(bytes))).toBe(false);
  }
});
