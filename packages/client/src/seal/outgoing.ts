// Seals what a member sends over a connection of its own, without a daemon: single sends, and sends inside commits.
// Every such way to send goes through here, so that no direct message leaves unsealed because a program forgot to seal
// it.
import { MeshError } from "@claudemesh/protocol/errors";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";

/** A send in the form that the broker accepts: a direct message is sealed, everything else is unchanged. */
export type SealSend = (request: AcceptRequest) => AcceptRequest;

/**
 * The member whose keys can seal, once libsodium is loaded. Absent where the keys are not available, as in a browser
 * that only signs.
 */
export type SealingIdentity = { readonly loadSealing?: (() => Promise<SealSend>) | undefined };

type Sending = { readonly commit?: { readonly sends?: readonly AcceptRequest[]; readonly invocation?: unknown } };

/** The input of an operation with its direct messages sealed. A signed commit is left as it was signed. */
export async function sealOutgoing(identity: SealingIdentity, operation: string, input: object): Promise<object> {
  if (operation === "send") {
    const send = input as AcceptRequest;
    return needsSealing(send) ? (await loadSealing(identity))(send) : input;
  }
  const { commit } = input as Sending;
  if (operation !== "space.commit" || commit?.invocation !== undefined) return input;
  if (commit?.sends?.some(needsSealing) !== true) return input;
  return { ...input, commit: { ...commit, sends: commit.sends.map(await loadSealing(identity)) } };
}

export function loadSealing({ loadSealing: load }: SealingIdentity): Promise<SealSend> {
  return load === undefined ? Promise.resolve(refuseUnsealed) : load();
}

export function needsSealing(request: Partial<AcceptRequest> | null): boolean {
  return request?.destination?.kind === "dm" && (request.envelope_version ?? "1") === "1";
}

const refuseUnsealed: SealSend = (request) => {
  if (!needsSealing(request)) return request;
  const message =
    "This connection has no keys to seal a direct message with: connect with an identity of identityOf, or seal the message.";
  throw new MeshError("dm_not_sealed", message);
};
