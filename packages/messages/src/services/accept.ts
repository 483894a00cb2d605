// Accepts one send: look up, limit, then claim, judge and write. The look-up precedes every limit, so that a retry of what
// committed gets its first answer even when limits were lowered, the window is spent, or the limiter is away.
// Why: docs/decisions/0134.
import { sha256 } from "@claudemesh/members/sha256";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { readAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import type { AcceptResult } from "@claudemesh/protocol/messages/accept-result";
import { type Envelope, isUnsealedDm } from "@claudemesh/protocol/messages/envelope";
import { fingerprint } from "@claudemesh/protocol/messages/fingerprint";
import { isOutdated } from "../core/claim-time.ts";
import { answerFromStored } from "../core/stored-accept.ts";
import type { AcceptStore, OfferedSend, StoredAccept } from "../ports.ts";

export type AcceptPorts = {
  readonly store: AcceptStore;
  readonly nowMs: () => number;
  readonly nextId: () => string;
  readonly inlineBytes: number;
  /** Whether the mesh takes direct messages that are not sealed. */
  readonly takesUnsealed: (meshId: string) => Promise<boolean>;
  /** Undefined where dedupe rows are permanent. */
  readonly dedupeRetentionMs: number | undefined;
  /** A fault point: between the look-up and the transaction, where a fence may slip in. */
  readonly afterLookUp: () => Promise<void> | void;
  /** After commit: wake the recipients' connections. */
  readonly onAccepted: (meshId: string, recipients: readonly string[]) => void;
};

export function fingerprintOf(envelope: Envelope): Uint8Array {
  return fingerprint(sha256, envelope);
}

/** The look-up of an id, under way, and when it began. */
export type LookUp = {
  readonly meshId: string;
  readonly clientMessageId: string;
  readonly atMs: number;
  readonly stored: Promise<StoredAccept | undefined>;
};

export function beginLookUp(
  { store, nowMs }: Pick<AcceptPorts, "store" | "nowMs">,
  meshId: string,
  clientMessageId: string,
): LookUp {
  // Taken before the look-up begins: how long a send may be under way counts from here (MSG-24).
  const atMs = nowMs();
  const stored = store.findAccepted(meshId, clientMessageId);
  // A request that began it early may be refused for something else, and then its answer is not waited for.
  stored.catch(() => undefined);
  return { meshId, clientMessageId, atMs, stored };
}

/** `early`: a look-up that was begun while the sender was being authenticated; it counts only if it is for this very send. */
export async function acceptMessage(
  ports: AcceptPorts,
  sender: { readonly meshId: string; readonly pubkey: string },
  request: AcceptRequest,
  early?: LookUp,
): Promise<AcceptResult> {
  const { clientMessageId, envelope, mentions } = readAcceptRequest(request);
  const { meshId, pubkey: senderPubkey } = sender;
  const offered = { clientMessageId, senderPubkey, fingerprint: fingerprintOf(envelope) };

  const isEarly = early?.meshId === meshId && early.clientMessageId === clientMessageId;
  const lookUp = isEarly ? early : beginLookUp(ports, meshId, clientMessageId);
  const stored = answerFromStored(await lookUp.stored, offered);
  if (stored !== undefined) return stored;
  const paused = ports.afterLookUp();
  if (paused !== undefined) await paused;

  if (isUnsealedDm(envelope) && !(await ports.takesUnsealed(meshId))) return { type: "refused", code: "dm_not_sealed" };
  if (envelope.body.length > ports.inlineBytes) return { type: "refused", code: "payload_too_large" };

  const nowMs = ports.nowMs();
  const send: OfferedSend = {
    meshId,
    senderPubkey,
    clientMessageId,
    brokerMessageId: ports.nextId(),
    envelope,
    fingerprint: offered.fingerprint,
    mentions,
    acceptedAtMs: nowMs,
    isOutdated: () => isOutdated(lookUp.atMs, ports.nowMs()),
    expiresAtMs: ports.dedupeRetentionMs === undefined ? undefined : nowMs + ports.dedupeRetentionMs,
  };
  const { result, recipients } = await ports.store.accept(send);
  if (result.type === "accepted") ports.onAccepted(meshId, recipients);
  return result;
}
