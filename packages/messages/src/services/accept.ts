// Accepts one send: B0, B1, then claim, B2 and B3. B0 precedes every limit, so that a retry of what committed gets its
// first answer even when limits were lowered, the window is spent, or the limiter is away.
import { sha256 } from "@claudemesh/members/sha256";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { readAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import type { AcceptResult } from "@claudemesh/protocol/messages/accept-result";
import type { Envelope } from "@claudemesh/protocol/messages/envelope";
import { fingerprint } from "@claudemesh/protocol/messages/fingerprint";
import { isOutdated } from "../core/claim-time.ts";
import { answerFromStored } from "../core/stored-accept.ts";
import type { AcceptStore, OfferedSend } from "../ports.ts";

export type AcceptPorts = {
  readonly store: AcceptStore;
  readonly nowMs: () => number;
  readonly nextId: () => string;
  readonly inlineBytes: number;
  /** Undefined: dedupe rows are permanent. */
  readonly dedupeRetentionMs: number | undefined;
  /** A fault point: between the look-up and the transaction, where a fence may slip in. */
  readonly afterB0: () => Promise<void> | void;
  /** After commit: wake the recipients' connections. */
  readonly onAccepted: (meshId: string, recipients: readonly string[]) => void;
};

export function fingerprintOf(envelope: Envelope): Uint8Array {
  return fingerprint(sha256, envelope);
}

export async function acceptSend(
  ports: AcceptPorts,
  sender: { readonly meshId: string; readonly pubkey: string },
  request: AcceptRequest,
): Promise<AcceptResult> {
  const { clientMessageId, envelope, mentions } = readAcceptRequest(request);
  const { meshId, pubkey: senderPubkey } = sender;
  const offered = { clientMessageId, senderPubkey, fingerprint: fingerprintOf(envelope) };

  const lookedUpAtMs = ports.nowMs();
  const stored = await ports.store.findAccepted(meshId, clientMessageId);
  const known = answerFromStored(stored, offered);
  if (known !== undefined) return known;
  const held = ports.afterB0();
  if (held !== undefined) await held;

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
    isOutdated: () => isOutdated(lookedUpAtMs, ports.nowMs()),
    expiresAtMs: ports.dedupeRetentionMs === undefined ? undefined : nowMs + ports.dedupeRetentionMs,
  };
  const { result, recipients } = await ports.store.accept(send);
  if (result.type === "accepted") ports.onAccepted(meshId, recipients);
  return result;
}
