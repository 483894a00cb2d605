// Sends of commits as the message side would prepare them, without its limits and its store.
import { type AcceptRequest, readAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import type { SendToAccept } from "@claudemesh/protocol/messages/commit-sends";

export function prepareSends(
  sender: { readonly meshId: string; readonly pubkey: string },
  sends: readonly AcceptRequest[],
): readonly SendToAccept[] {
  return sends.map((send, index) => ({
    ...readAcceptRequest(send),
    meshId: sender.meshId,
    senderPubkey: sender.pubkey,
    brokerMessageId: `message-${index}`,
    fingerprint: new Uint8Array(32),
    acceptedAtMs: 1,
    expiresAtMs: undefined,
  }));
}
