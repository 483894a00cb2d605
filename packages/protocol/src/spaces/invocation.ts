// Signed writes: what a member signs to put its name under one commit. The envelope names the payload by its hash and
// the place that it is for, so that a signature is good for this commit and no other. Signing and checking are others'.
import { canonicalJson } from "../canonical/canonical-json.ts";
import type { JsonValue } from "../json/strict-json.ts";

/** It may say more than this (a time, a nonce); all of it is signed and kept. */
export type InvocationEnvelope = {
  /** Who signs: the member's public key. */
  readonly iss: string;
  /** What it is about: mesh id and space. */
  readonly sub: { readonly mesh: string; readonly space: string };
  readonly cmd: "/memory/commit";
  readonly args: {
    readonly sessionId: string;
    readonly localSeq: number;
    /** SHA-256 of the canonical payload, in lower-case hex. */
    readonly payloadHash: string;
  };
};

/** As it stands in a commit: `signature` is ed25519 over `invocationBytes`, 128 lower-case hex digits. */
export type Invocation = { readonly envelope: InvocationEnvelope; readonly signature: string };

const utf8 = new TextEncoder();

/** The label keeps a signature made for this from being good for anything else. */
export function invocationBytes(envelope: JsonValue): Uint8Array {
  return utf8.encode(`claudemesh-invocation-1\0${canonicalJson(envelope)}`);
}
