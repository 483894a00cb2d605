// A wire whose writes carry their member's signature, for spaces that accept no others. Signing is asynchronous, so
// requests queue here to leave in the order of the calls; one whose connection has ended meanwhile is not sent.
// Why: docs/decisions/0058.
import { encodeUtf8 } from "@claudemesh/protocol/encoding/utf8";
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import {
  type BranchCreation,
  branchCreation,
  branchDeletion,
  envelopeOf,
  type Invocation,
  invocationBytes,
  type SignedWrite,
  signedBranchWrite,
  signedCommit,
} from "@claudemesh/protocol/spaces/invocation";
import type { SpaceRequestType, SpaceWire, WireOutcome } from "../space-wire.ts";

/** The member that signs. */
export type WriteSigner = {
  readonly meshId: string;
  /** 32 bytes in lower-case hex. */
  readonly publicKey: string;
  readonly sign: (bytes: Uint8Array) => Uint8Array | Promise<Uint8Array>;
};

export function signingWire(wire: SpaceWire, signer: WriteSigner): SpaceWire {
  let last: Promise<unknown> = Promise.resolve();
  let connections = 0;
  wire.listen({
    onPush: () => undefined,
    onUp: () => undefined,
    onDown: () => {
      connections += 1;
    },
  });
  return {
    isUp: () => wire.isUp(),
    listen: (events) => wire.listen(events),
    close: () => wire.close(),
    request: (type, input) => {
      const connection = connections;
      const handedOver = last.then(async (): Promise<{ readonly outcome: Promise<WireOutcome> }> => {
        const signed = await signInput(signer, type, input);
        if (connections !== connection) return { outcome: Promise.resolve({ type: "not_sent" }) };
        return { outcome: wire.request(type, signed) };
      });
      last = handedOver;
      return handedOver.then(({ outcome }) => outcome);
    },
  };
}

type WriteInput = {
  readonly space: string;
  readonly sessionId: string;
  readonly commit?: EncodedCommit;
} & BranchCreation;

/** The input with its signature; an input that is not a write is unchanged. */
export async function signInput(signer: WriteSigner, type: SpaceRequestType, input: object): Promise<object> {
  const write = input as WriteInput;
  if (type === "space.commit" && write.commit !== undefined) {
    const invocation = await signWrite(signer, write, signedCommit(write.commit));
    return { ...input, commit: { ...write.commit, invocation } };
  }
  if (type !== "space.branch.create" && type !== "space.branch.delete") return input;
  const branchWrite = type === "space.branch.create" ? branchCreation(write) : branchDeletion(write);
  return { ...input, invocation: await signWrite(signer, write, signedBranchWrite(branchWrite)) };
}

async function signWrite(signer: WriteSigner, target: WriteInput, write: SignedWrite): Promise<Invocation> {
  const payload = encodeUtf8(write.payload);
  const payloadHash = toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", payload)));
  const envelope = envelopeOf({ ...signer, space: target.space, sessionId: target.sessionId }, write, payloadHash);
  return { envelope, signature: toHex(await signer.sign(invocationBytes(envelope))) };
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
