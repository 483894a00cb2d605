// Signed writes: what a member signs to put its name under one commit, or under the creation or deletion of a branch.
// The envelope names the hash of the payload, and the space and branch, so that a signature is valid for this write and
// no other. Signing and checking are done elsewhere.
import { canonicalJson } from "../canonical/canonical-json.ts";
import { encodeUtf8 } from "../encoding/utf8.ts";
import type { JsonValue } from "../json/strict-json.ts";
import { canonicalCommitPayload, type EncodedCommit } from "./commit.ts";

export type WriteCommand = "/memory/commit" | "/memory/branch/create" | "/memory/branch/delete";

/** The creation or deletion of a branch, as the log keeps it. */
export type BranchWrite = {
  readonly cmd: Exclude<WriteCommand, "/memory/commit">;
  readonly args: { readonly localSeq: number; readonly name: string; readonly [more: string]: JsonValue };
};

export type BranchCreation = {
  readonly localSeq: number;
  readonly name: string;
  readonly fromBranch?: string | undefined;
  readonly atSeq?: number | undefined;
};

export function branchCreation({ localSeq, name, fromBranch, atSeq }: BranchCreation): BranchWrite {
  const from = { ...(fromBranch !== undefined && { fromBranch }), ...(atSeq !== undefined && { atSeq }) };
  return { cmd: "/memory/branch/create", args: { localSeq, name, ...from } };
}

export function branchDeletion({ localSeq, name }: Pick<BranchCreation, "localSeq" | "name">): BranchWrite {
  return { cmd: "/memory/branch/delete", args: { localSeq, name } };
}

/** What is signed of a write: the command, and the text that is hashed. */
export type SignedWrite = { readonly cmd: WriteCommand; readonly localSeq: number; readonly payload: string };

export function signedCommit(commit: EncodedCommit): SignedWrite {
  return { cmd: "/memory/commit", localSeq: commit.localSeq, payload: canonicalCommitPayload(commit) };
}

export function signedBranchWrite(write: BranchWrite): SignedWrite {
  return { cmd: write.cmd, localSeq: write.args.localSeq, payload: canonicalJson(write) };
}

/** An envelope may have more fields (a time, a nonce); all of it is signed and stored. */
export type InvocationEnvelope = {
  /** The public key of the signing member. */
  readonly iss: string;
  /** What the write is about: mesh id and space. */
  readonly sub: { readonly mesh: string; readonly space: string };
  readonly cmd: WriteCommand;
  readonly args: {
    readonly sessionId: string;
    readonly localSeq: number;
    /** SHA-256 of the canonical payload, in lower-case hex. */
    readonly payloadHash: string;
  };
};

/** The form in a commit: `signature` is ed25519 over `invocationBytes`, 128 lower-case hex digits. */
export type Invocation = { readonly envelope: InvocationEnvelope; readonly signature: string };

/** The member that writes, and where it writes. */
export type SigningScope = {
  readonly publicKey: string;
  readonly meshId: string;
  readonly space: string;
  readonly sessionId: string;
};

/** The envelope to sign for a write; `payloadHash` is the hash of its payload. */
export function envelopeOf(
  { publicKey, meshId, space, sessionId }: SigningScope,
  { cmd, localSeq }: Pick<SignedWrite, "cmd" | "localSeq">,
  payloadHash: string,
): InvocationEnvelope {
  const sub = { mesh: meshId, space };
  return { iss: publicKey, sub, cmd, args: { sessionId, localSeq, payloadHash } };
}

/** The label keeps a signature made for this purpose from being valid for any other. */
export function invocationBytes(envelope: JsonValue): Uint8Array {
  return encodeUtf8(`claudemesh-invocation-1\0${canonicalJson(envelope)}`);
}
