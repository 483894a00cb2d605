// Sealing against the published vectors, and what it promises to those who hold keys and to those who do not.
import { readFileSync } from "node:fs";
import { decodeHex, encodeHex } from "@claudemesh/protocol/encoding/hex";
import { readAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import type { Priority } from "@claudemesh/protocol/messages/envelope";
import { fingerprint } from "@claudemesh/protocol/messages/fingerprint";
import { paddedLength } from "@claudemesh/protocol/messages/sealed-content";
import sodium from "libsodium-wrappers";
import { beforeAll, describe, expect, it } from "vitest";
import { generateMemberKeys, type KeyPair, memberKeysFromSeed } from "../keys/member-keys.ts";
import { nodeSha256 } from "../keys/node-sha256.ts";
import { composeEnvelope, loadSealer, type Sealer, type SealRequest, sealRequest } from "./seal.ts";
import { SharedKeys } from "./shared-keys.ts";

type Case = {
  readonly name: string;
  readonly sender: string;
  readonly recipient: string;
  readonly client_message_id: string;
  readonly request_fingerprint: string;
  readonly body: string;
  readonly nonce: string;
  readonly sealed: string;
};
type Case3 = Case & {
  readonly reply_to_id?: string;
  readonly priority?: Priority;
  readonly from_agent?: string;
  readonly to_agent?: string;
  readonly meta?: string;
  readonly inside: string;
};
type Vectors = {
  readonly members: readonly { readonly name: string; readonly ed25519: KeyPair; readonly x25519: KeyPair }[];
  readonly cases: readonly Case[];
  readonly version_3: {
    readonly box_key_label: string;
    readonly nonce_key_label: string;
    readonly cases: readonly Case3[];
  };
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
const text = (value: string) => new TextEncoder().encode(value);
const content = {
  recipient: keyOf(bob),
  clientMessageId: "m-1",
  replyToId: "b-7",
  priority: "now",
  fromAgent: "planner",
  toAgent: undefined,
  canonicalMeta: '{"run":7}',
  body: text("for bob alone"),
} as const;
const request = { content, requestFingerprint: new Uint8Array(32).fill(7) };
const withContent = (change: Partial<SealRequest["content"]>) => ({ ...request, content: { ...content, ...change } });

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

  it.each(vectors.version_3.cases.map((vector) => [vector.name, vector] as const))(
    "seal and open: %s",
    async (_, vector) => {
      const [sender, recipient] = [memberNamed(vector.sender), memberNamed(vector.recipient)];
      const inside = {
        recipient: keyOf(recipient),
        clientMessageId: vector.client_message_id,
        replyToId: vector.reply_to_id,
        priority: vector.priority ?? "next",
        fromAgent: vector.from_agent,
        toAgent: vector.to_agent,
        canonicalMeta: vector.meta ?? "",
        body: bytesOf(vector.body),
      } as const;
      const requestFingerprint = bytesOf(vector.request_fingerprint);
      const destination = { kind: "dm", ref: keyOf(recipient) } as const;
      expect(encodeHex(fingerprint(nodeSha256, { ...inside, version: "1", destination }))).toBe(
        vector.request_fingerprint,
      );
      const sealed = (await loadSealer(sender)).seal({ content: inside, requestFingerprint });
      expect(encodeHex(sealed)).toBe(vector.sealed);
      expect(nonceOf(sealed)).toBe(vector.nonce);
      const opened = (await loadSealer(recipient)).open({ peer: keyOf(sender), sealed });
      expect(opened).toEqual({ ...inside, sender: keyOf(sender) });
    },
  );

  it("follow from libsodium's own functions as the page says", async () => {
    await sodium.ready;
    const { box_key_label, nonce_key_label, cases } = vectors.version_3;
    for (const vector of cases) {
      const [sender, recipient] = [memberNamed(vector.sender), memberNamed(vector.recipient)];
      const shared = sodium.crypto_box_beforenm(
        bytesOf(recipient.x25519.public_key),
        bytesOf(sender.x25519.secret_key),
      );
      const boxKey = sodium.crypto_generichash(32, text(box_key_label), shared);
      const nonceKey = sodium.crypto_generichash(32, text(nonce_key_label), bytesOf(sender.ed25519.secret_key));
      const inside = bytesOf(vector.inside);
      const head = inside.subarray(0, 4 + new DataView(inside.buffer, inside.byteOffset).getUint32(0));
      const nonceInput = Buffer.concat([bytesOf(vector.request_fingerprint), head]);
      const nonce = sodium.crypto_generichash(24, nonceInput, nonceKey);
      expect(encodeHex(nonce)).toBe(vector.nonce);
      const box = sodium.crypto_box_easy_afternm(inside, nonce, boxKey);
      expect(encodeHex(nonce) + encodeHex(box)).toBe(vector.sealed);
    }
  });

  it.each(vectors.cases.map((vector) => [vector.name, vector] as const))("of version 2 open: %s", async (_, vector) => {
    const [sender, recipient] = [memberNamed(vector.sender), memberNamed(vector.recipient)];
    const sealed = bytesOf(vector.sealed);
    const toOpen = { peer: keyOf(sender), sealed };
    const sealer = await loadSealer(recipient);
    expect(sealer.openVersion2(toOpen)).toEqual(bytesOf(vector.body));
    expect(sealer.open(toOpen)).toBeUndefined();
    const ofSender = await loadSealer(sender);
    expect(ofSender.openVersion2({ peer: keyOf(recipient), sealed })).toEqual(bytesOf(vector.body));
  });
});

describe("sealing", () => {
  it("is opened by the recipient, and by the sender as its own, with everything that was said", () => {
    const sealed = fromAlice.seal(request);
    const inside = { ...content, sender: keyOf(alice) };
    expect(sealed).toHaveLength(paddedLength(sealed.length));
    expect(fromBob.open({ peer: keyOf(alice), sealed })).toEqual(inside);
    expect(fromAlice.open({ peer: keyOf(bob), sealed })).toEqual(inside);
  });

  it("to oneself is opened", () => {
    const sealed = fromAlice.seal(withContent({ recipient: keyOf(alice) }));
    expect(fromAlice.open({ peer: keyOf(alice), sealed })?.body).toEqual(content.body);
  });

  it("of the same request gives the same bytes, also after a restart and after a larger one", async () => {
    const sealed = fromAlice.seal(request);
    fromAlice.seal(withContent({ clientMessageId: "large", body: new Uint8Array(50_000).fill(0xff) }));
    expect(fromAlice.seal(request)).toEqual(sealed);
    expect((await loadSealer(alice)).seal(request)).toEqual(sealed);
  });

  it("holds bodies of every size", () => {
    for (const size of [0, 1, 100, 1_000, 16_000, 16_384, 70_000]) {
      const sealed = fromAlice.seal(withContent({ body: new Uint8Array(size).fill(size) }));
      expect(fromBob.open({ peer: keyOf(alice), sealed })?.body).toEqual(new Uint8Array(size).fill(size));
    }
  });

  it("gives whatever differs another nonce: any field beside the body, the fingerprint, the sender", () => {
    const nonces = [
      fromAlice.seal(request),
      fromAlice.seal(withContent({ recipient: keyOf(carol) })),
      fromAlice.seal(withContent({ clientMessageId: "m-2" })),
      fromAlice.seal(withContent({ replyToId: undefined })),
      fromAlice.seal(withContent({ priority: "next" })),
      fromAlice.seal(withContent({ fromAgent: undefined })),
      fromAlice.seal(withContent({ fromAgent: undefined, toAgent: "planner" })),
      fromAlice.seal(withContent({ canonicalMeta: "" })),
      fromAlice.seal({ ...request, requestFingerprint: new Uint8Array(32).fill(8) }),
      fromBob.seal(request),
      fromCarol.seal(request),
    ].map(nonceOf);
    expect(new Set(nonces).size).toBe(nonces.length);
  });

  it("takes no fingerprint of another length, which could make two requests look alike", () => {
    const short = { ...request, requestFingerprint: new Uint8Array(31) };
    expect(() => fromAlice.seal(short)).toThrow(RangeError);
  });

  it("refuses a recipient's key that is no point of the curve, or one of small order", () => {
    // y = 2 has no x on the curve; y = 1 is the neutral element; y = 0 has order 4.
    for (const recipient of [`02${"00".repeat(31)}`, `01${"00".repeat(31)}`, "00".repeat(32), "ff".repeat(32), "xyz"]) {
      expect(() => fromAlice.seal(withContent({ recipient }))).toThrow(
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
      expect(fromBob.open({ peer: keyOf(alice), sealed: changed })).toBeUndefined();
      expect(fromBob.open({ peer: keyOf(alice), sealed: sealed.subarray(0, at) })).toBeUndefined();
    }
  });

  it("gives nothing under another sender's name", () => {
    const sealed = fromAlice.seal(request);
    expect(fromBob.open({ peer: keyOf(carol), sealed })).toBeUndefined();
    expect(fromBob.open({ peer: keyOf(bob), sealed })).toBeUndefined();
    expect(fromBob.open({ peer: `02${"00".repeat(31)}`, sealed })).toBeUndefined();
  });

  it("gives nothing to any other member", () => {
    const sealed = fromAlice.seal(request);
    expect(fromCarol.open({ peer: keyOf(alice), sealed })).toBeUndefined();
    expect(fromCarol.open({ peer: keyOf(bob), sealed })).toBeUndefined();
  });

  it("never takes a box for one of another version", () => {
    expect(fromBob.openVersion2({ peer: keyOf(alice), sealed: fromAlice.seal(request) })).toBeUndefined();
  });
});

describe("an envelope", () => {
  const plain = { priority: "low", replyToId: "b-1", canonicalMeta: '{"a":1}', body: text("hello") } as const;

  it("of a direct message is sealed and shows no meta; of anything else it is what was written", () => {
    const ports = { sealer: fromAlice, sha256: nodeSha256 };
    const dm = { kind: "dm", ref: keyOf(bob) } as const;
    const composed = composeEnvelope(ports, { clientMessageId: "e-1", destination: dm, content: plain });
    expect(composed.envelope).toMatchObject({ version: "3", canonicalMeta: "", priority: "low", replyToId: "b-1" });
    expect(composed.requestFingerprint).toEqual(fingerprint(nodeSha256, { ...plain, version: "1", destination: dm }));
    expect(fromBob.open({ peer: keyOf(alice), sealed: composed.envelope.body })).toMatchObject({
      ...plain,
      clientMessageId: "e-1",
      recipient: keyOf(bob),
    });
    const topic = { kind: "topic", ref: "news" } as const;
    expect(composeEnvelope(ports, { clientMessageId: "e-2", destination: topic, content: plain }).envelope).toEqual({
      ...plain,
      version: "1",
      destination: topic,
    });
  });

  it("of a request is sealed once, and what needs no sealing is left alone", () => {
    const ports = { sealer: fromAlice, sha256: nodeSha256 };
    const dm = {
      client_message_id: "r-1",
      destination: { kind: "dm" as const, ref: keyOf(bob) },
      body: "hello",
      meta: { a: 1 },
      reply_to_id: "b-1",
    };
    const sealed = sealRequest(ports, dm);
    expect(sealed).toMatchObject({ client_message_id: "r-1", envelope_version: "3", reply_to_id: "b-1" });
    expect(sealed).not.toHaveProperty("meta");
    const box = { peer: keyOf(alice), sealed: readAcceptRequest(sealed).envelope.body };
    expect(fromBob.open(box)).toMatchObject({ canonicalMeta: '{"a":1}', body: text("hello") });
    expect(sealRequest(ports, sealed)).toBe(sealed);
    const topic = { client_message_id: "r-2", destination: { kind: "topic" as const, ref: "news" }, body: "x" };
    expect(sealRequest(ports, topic)).toBe(topic);
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
      crypto_generichash: (_bytes: number, _message: Uint8Array, key: Uint8Array) => key.slice(),
    };
  }
  const peer = (name: string) => name.repeat(32);

  it("are derived once for the peers used last", () => {
    const crypto = countingCrypto();
    const keys = new SharedKeys(crypto, new Uint8Array(32), 2);
    for (const name of ["aa", "bb", "aa", "cc", "aa", "bb"]) {
      expect(encodeHex(keys.get(peer(name))?.version2 ?? new Uint8Array())).toBe(peer(name));
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
