import { readFileSync } from "node:fs";
import { decodeHex, encodeHex } from "@claudemesh/protocol/encoding/hex";
import sodium from "libsodium-wrappers";
import { beforeAll, describe, expect, it } from "vitest";
import { generateMemberKeys, type KeyPair, memberKeysFromSeed } from "../keys/member-keys.ts";
import { loadSealer, type Sealer, sealOverheadBytes } from "./seal.ts";
import { SharedKeys } from "./shared-keys.ts";

type Vectors = {
  readonly members: readonly { readonly name: string; readonly ed25519: KeyPair; readonly x25519: KeyPair }[];
  readonly cases: readonly {
    readonly name: string;
    readonly sender: string;
    readonly recipient: string;
    readonly client_message_id: string;
    readonly request_fingerprint: string;
    readonly body: string;
    readonly nonce: string;
    readonly sealed: string;
  }[];
};

const vectors = JSON.parse(
  readFileSync(new URL("../../../protocol/vectors/sealing.json", import.meta.url), "utf8"),
) as Vectors;

function bytesOf(hex: string): Uint8Array {
  const bytes = decodeHex(hex);
  if (bytes === undefined) throw new Error(`not hex: ${hex}`);
  return bytes;
}

function memberNamed(name: string) {
  const member = vectors.members.find((candidate) => candidate.name === name);
  if (member === undefined) throw new Error(`no member ${name}`);
  return member;
}

const alice = generateMemberKeys();
const bob = generateMemberKeys();
const carol = generateMemberKeys();
const keyOf = (keys: { ed25519: KeyPair }) => keys.ed25519.public_key;
const request = {
  recipient: keyOf(bob),
  clientMessageId: "m-1",
  requestFingerprint: new Uint8Array(32).fill(7),
  body: new TextEncoder().encode("for bob alone"),
};

let fromAlice: Sealer;
let fromBob: Sealer;
let fromCarol: Sealer;

beforeAll(async () => {
  [fromAlice, fromBob, fromCarol] = (await Promise.all([alice, bob, carol].map(loadSealer))) as [
    Sealer,
    Sealer,
    Sealer,
  ];
});

const nonceOf = (sealed: Uint8Array) => encodeHex(sealed.subarray(0, 24));

describe("the vectors", () => {
  it("have keys that follow from their seeds", () => {
    expect(vectors.members.length).toBeGreaterThan(1);
    for (const { ed25519, x25519 } of vectors.members) {
      expect(memberKeysFromSeed(bytesOf(ed25519.secret_key))).toEqual({ ed25519, x25519 });
    }
  });

  it.each(vectors.cases.map((vector) => [vector.name, vector] as const))("seal and open: %s", async (_, vector) => {
    const [sender, recipient] = [memberNamed(vector.sender), memberNamed(vector.recipient)];
    const sealed = (await loadSealer(sender)).seal({
      recipient: keyOf(recipient),
      clientMessageId: vector.client_message_id,
      requestFingerprint: bytesOf(vector.request_fingerprint),
      body: bytesOf(vector.body),
    });
    expect(encodeHex(sealed)).toBe(vector.sealed);
    expect(nonceOf(sealed)).toBe(vector.nonce);
    expect((await loadSealer(recipient)).open({ sender: keyOf(sender), sealed })).toEqual(bytesOf(vector.body));
  });

  it("are plain crypto_box between the x25519 keys", async () => {
    await sodium.ready;
    for (const { sender, recipient, body, nonce, sealed } of vectors.cases) {
      const [publicKey, secretKey] = [memberNamed(recipient).x25519.public_key, memberNamed(sender).x25519.secret_key];
      const box = sodium.crypto_box_easy(bytesOf(body), bytesOf(nonce), bytesOf(publicKey), bytesOf(secretKey));
      expect(nonce + encodeHex(box)).toBe(sealed);
    }
  });
});

describe("sealing", () => {
  it("is opened by the recipient, and by the sender as its own", () => {
    const sealed = fromAlice.seal(request);
    expect(sealed).toHaveLength(request.body.length + sealOverheadBytes);
    expect(fromBob.open({ sender: keyOf(alice), sealed })).toEqual(request.body);
    expect(fromAlice.openOwn({ recipient: keyOf(bob), sealed })).toEqual(request.body);
  });

  it("to oneself is opened both ways", () => {
    const sealed = fromAlice.seal({ ...request, recipient: keyOf(alice) });
    expect(fromAlice.open({ sender: keyOf(alice), sealed })).toEqual(request.body);
    expect(fromAlice.openOwn({ recipient: keyOf(alice), sealed })).toEqual(request.body);
  });

  it("of the same request gives the same bytes, also after a restart", async () => {
    const sealed = fromAlice.seal(request);
    expect(fromAlice.seal(request)).toEqual(sealed);
    expect((await loadSealer(alice)).seal(request)).toEqual(sealed);
  });

  it("gives another id, fingerprint or sender another nonce", () => {
    const [first, ...rest] = [
      fromAlice.seal(request),
      fromAlice.seal({ ...request, clientMessageId: "m-2" }),
      fromAlice.seal({ ...request, requestFingerprint: new Uint8Array(32).fill(8) }),
      fromBob.seal(request),
      fromCarol.seal(request),
    ].map(nonceOf);
    expect(new Set([first, ...rest]).size).toBe(5);
  });

  it("takes no fingerprint of another length, which could make two requests look alike", () => {
    const short = { ...request, requestFingerprint: new Uint8Array(31) };
    expect(() => fromAlice.seal(short)).toThrow(RangeError);
  });

  it("refuses a recipient's key that is no point of the curve, or one of small order", () => {
    // y = 2 has no x on the curve; y = 1 is the neutral element; y = 0 has order 4.
    for (const recipient of [`02${"00".repeat(31)}`, `01${"00".repeat(31)}`, "00".repeat(32), "ff".repeat(32), "xyz"]) {
      expect(() => fromAlice.seal({ ...request, recipient })).toThrow(
        expect.objectContaining({ name: "MeshError", code: "invalid_address" }),
      );
    }
  });
});

describe("opening", () => {
  it("gives nothing when any byte was changed, or the end was cut off", () => {
    const sealed = fromAlice.seal(request);
    for (let at = 0; at < sealed.length; at++) {
      const changed = sealed.slice();
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(fromBob.open({ sender: keyOf(alice), sealed: changed })).toBeUndefined();
      expect(fromBob.open({ sender: keyOf(alice), sealed: sealed.subarray(0, at) })).toBeUndefined();
    }
  });

  it("gives nothing under another sender's name", () => {
    const sealed = fromAlice.seal(request);
    expect(fromBob.open({ sender: keyOf(carol), sealed })).toBeUndefined();
    expect(fromBob.open({ sender: keyOf(bob), sealed })).toBeUndefined();
    expect(fromBob.open({ sender: `02${"00".repeat(31)}`, sealed })).toBeUndefined();
  });

  it("gives nothing to anybody else", () => {
    const sealed = fromAlice.seal(request);
    expect(fromCarol.open({ sender: keyOf(alice), sealed })).toBeUndefined();
    expect(fromCarol.openOwn({ recipient: keyOf(bob), sealed })).toBeUndefined();
  });
});

describe("shared keys", () => {
  /** Counts the multiplications; its keys are copies of the peer's, so that one can tell them apart. */
  function countingCrypto() {
    const derived: string[] = [];
    return {
      derived,
      crypto_sign_ed25519_pk_to_curve25519: (publicKey: Uint8Array) => publicKey,
      crypto_box_beforenm: (publicKey: Uint8Array) => {
        derived.push(encodeHex(publicKey).slice(0, 2));
        return publicKey.slice();
      },
    };
  }
  const peer = (name: string) => name.repeat(32);

  it("are derived once for the peers used last", () => {
    const crypto = countingCrypto();
    const keys = new SharedKeys(crypto, new Uint8Array(32), 2);
    for (const name of ["aa", "bb", "aa", "cc", "aa", "bb"]) {
      expect(encodeHex(keys.get(peer(name)) ?? new Uint8Array())).toBe(peer(name));
    }
    expect(crypto.derived).toEqual(["aa", "bb", "cc", "bb"]);
  });

  it("are not looked for under anything but a public key in lower-case hex", () => {
    const crypto = countingCrypto();
    const keys = new SharedKeys(crypto, new Uint8Array(32), 2);
    for (const name of ["", "aa", "A".repeat(64), "zz".repeat(32)]) expect(keys.get(name)).toBeUndefined();
    expect(crypto.derived).toEqual([]);
  });
});
