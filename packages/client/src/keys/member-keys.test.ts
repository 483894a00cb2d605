import { createPublicKey, verify } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { decodeHex, encodeHex } from "@claudemesh/protocol/encoding/hex";
import sodium from "libsodium-wrappers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LocalFileError } from "../home/private-files.ts";
import { TemporaryDir } from "../testing/temporary-dir.ts";
import {
  generateMemberKeys,
  identityOf,
  type MemberKeys,
  memberKeysFromSeed,
  readKeyFile,
  signerOf,
  writeKeyFile,
} from "./member-keys.ts";

let dir: TemporaryDir;
let path: string;

beforeEach(() => {
  dir = new TemporaryDir();
  path = dir.at("keypair.json");
});

afterEach(() => {
  vi.restoreAllMocks();
  dir.remove();
});

const bytesOf = (hex: string) => decodeHex(hex) ?? new Uint8Array();

describe("member keys", () => {
  it("are new each time", () => {
    expect(generateMemberKeys().ed25519.secret_key).not.toBe(generateMemberKeys().ed25519.secret_key);
  });

  it("have the x25519 pair that libsodium converts the ed25519 pair to", async () => {
    await sodium.ready;
    for (let round = 0; round < 50; round++) {
      const keys = generateMemberKeys();
      const pair = sodium.crypto_sign_seed_keypair(bytesOf(keys.ed25519.secret_key));
      expect(keys.ed25519.public_key).toBe(encodeHex(pair.publicKey));
      expect(keys.x25519.secret_key).toBe(encodeHex(sodium.crypto_sign_ed25519_sk_to_curve25519(pair.privateKey)));
      expect(keys.x25519.public_key).toBe(encodeHex(sodium.crypto_sign_ed25519_pk_to_curve25519(pair.publicKey)));
    }
  });

  it("give the public key and signature of RFC 8032, test 2", () => {
    const keys = memberKeysFromSeed(bytesOf("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"));
    expect(keys.ed25519.public_key).toBe("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
    expect(encodeHex(signerOf(keys)(new Uint8Array([0x72])))).toBe(
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    );
  });

  it("sign as the identity that they make", () => {
    const keys = generateMemberKeys();
    const identity = identityOf(keys, "a-mesh");
    const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), bytesOf(identity.publicKey)]);
    const publicKey = createPublicKey({ key: spki, format: "der", type: "spki" });
    const bytes = new TextEncoder().encode("what is signed");
    const signature = identity.sign(bytes);
    expect(signature).toHaveLength(64);
    expect(verify(null, bytes, publicKey, signature)).toBe(true);
  });
});

function refusalOf(read: () => unknown): LocalFileError {
  try {
    read();
  } catch (error) {
    if (error instanceof LocalFileError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("a key file", () => {
  it.each([0o000, 0o022, 0o777])("is 0600 with umask %o and reads back", (umask) => {
    const before = process.umask(umask);
    try {
      const keys = generateMemberKeys();
      writeKeyFile(path, keys);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(readKeyFile(path)).toEqual(keys);
    } finally {
      process.umask(before);
    }
  });

  it("is never overwritten, and a refused write leaves nothing behind", () => {
    writeKeyFile(path, generateMemberKeys());
    const first = readFileSync(path, "utf8");
    expect(refusalOf(() => writeKeyFile(path, generateMemberKeys())).problem).toBe("exists");
    expect(readFileSync(path, "utf8")).toBe(first);
    expect(readdirSync(dir.path)).toEqual(["keypair.json"]);
  });

  it("is refused when others may read it, with the command that mends it", () => {
    writeKeyFile(path, generateMemberKeys());
    for (const mode of [0o640, 0o604, 0o660]) {
      chmodSync(path, mode);
      const refusal = refusalOf(() => readKeyFile(path));
      expect(refusal.problem).toBe("unsafe");
      expect(refusal.message).toContain(`chmod 600 ${path}`);
    }
  });

  it("is refused when another user owns it", () => {
    writeKeyFile(path, generateMemberKeys());
    const uid = process.getuid?.() ?? 0;
    vi.spyOn(process, "getuid").mockReturnValue(uid + 1);
    expect(refusalOf(() => readKeyFile(path)).problem).toBe("unsafe");
  });

  it("is refused when it is a symbolic link, a folder, or missing", () => {
    writeKeyFile(dir.at("real.json"), generateMemberKeys());
    symlinkSync(dir.at("real.json"), path);
    expect(refusalOf(() => readKeyFile(path)).problem).toBe("unsafe");
    expect(refusalOf(() => readKeyFile(dir.path)).problem).toBe("unsafe");
    expect(refusalOf(() => readKeyFile(dir.at("none.json"))).problem).toBe("missing");
    expect(refusalOf(() => readKeyFile(dir.at("none.json"))).message).toContain("join the mesh again");
  });

  const damages: [string, (file: MemberKeys & { version: number }) => unknown][] = [
    ["another version", (file) => ({ ...file, version: 2 })],
    [
      "a public key of another member",
      (file) => ({ ...file, ed25519: { ...file.ed25519, public_key: otherPublicKey } }),
    ],
    [
      "an x25519 secret that does not follow",
      (file) => ({ ...file, x25519: { ...file.x25519, secret_key: otherSeed } }),
    ],
    [
      "an x25519 public key that does not follow",
      (file) => ({ ...file, x25519: { ...file.x25519, public_key: otherSeed } }),
    ],
    ["a secret that is too short", (file) => ({ ...file, ed25519: { ...file.ed25519, secret_key: "00" } })],
    ["capitals in its hex", (file) => ({ ...file, ed25519: { ...file.ed25519, secret_key: "A".repeat(64) } })],
    ["a pair missing", ({ version, ed25519 }) => ({ version, ed25519 })],
    ["no object in it", () => null],
  ];
  const otherSeed = "11".repeat(32);
  const otherPublicKey = memberKeysFromSeed(bytesOf(otherSeed)).ed25519.public_key;

  it.each(damages)("with %s is refused", (_, damage) => {
    const file = { version: 1, ...generateMemberKeys() };
    writeFileSync(path, JSON.stringify(damage(file)), { mode: 0o600 });
    expect(refusalOf(() => readKeyFile(path)).problem).toBe("unreadable");
  });

  it("that was cut off is refused and kept", () => {
    writeFileSync(path, '{"version":1,"ed25', { mode: 0o600 });
    expect(refusalOf(() => readKeyFile(path)).problem).toBe("unreadable");
    expect(existsSync(path)).toBe(true);
  });
});
