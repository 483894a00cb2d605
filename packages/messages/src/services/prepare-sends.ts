// Look-up and limit for the sends that a commit carries, which are accepted inside its transaction: reads and fingerprints each,
// looks its id up, and spends its budget. What is malformed, too large or over budget is thrown, and nothing has been accepted.
import { MeshError } from "@claudemesh/protocol/errors";
import { type AcceptRequest, readAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { isUnsealedDm } from "@claudemesh/protocol/messages/envelope";
import type { AcceptStore, SendToAccept } from "../ports.ts";
import { fingerprintOf } from "./accept.ts";
import { type SpendPorts, spendUnit } from "./spend-unit.ts";

export type PrepareSendsPorts = SpendPorts & {
  readonly store: Pick<AcceptStore, "findAccepted">;
  readonly nowMs: () => number;
  readonly nextId: () => string;
  readonly inlineBytes: number;
  /** Whether the mesh takes direct messages that are not sealed. */
  readonly takesUnsealed: (meshId: string) => Promise<boolean>;
  /** Undefined where dedupe rows are permanent. */
  readonly dedupeRetentionMs: number | undefined;
};

type Sender = { readonly meshId: string; readonly pubkey: string };

/** An id that is consumed already passes without a budget: the transaction finds it, and decides. */
export async function prepareSends(
  ports: PrepareSendsPorts,
  sender: Sender,
  requests: readonly AcceptRequest[],
): Promise<SendToAccept[]> {
  const sends = requests.map((request, index) => naming(index, () => readSend(ports, sender, request)));
  const fresh: SendToAccept[] = [];
  for (const [index, send] of sends.entries()) {
    if (await isConsumed(ports, send)) continue;
    await checkSealed(ports, send, index);
    checkSize(ports, send, index);
    fresh.push(send);
  }
  // One after the other: where the budget ends, those behind have spent nothing.
  for (const send of fresh) await spendBudget(ports, send);
  return sends;
}

/** Of up to 32 sends, which one is refused. */
function naming<T>(index: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof MeshError)) throw error;
    const { field, ...details } = error.details;
    const named = typeof field === "string" ? { field: `commit.sends.${index}.${field}` } : {};
    throw new MeshError(error.code, error.message, { ...details, ...named, index }, error);
  }
}

function readSend(ports: PrepareSendsPorts, sender: Sender, request: AcceptRequest): SendToAccept {
  const { clientMessageId, envelope, mentions } = readAcceptRequest(request);
  const acceptedAtMs = ports.nowMs();
  return {
    clientMessageId,
    senderPubkey: sender.pubkey,
    fingerprint: fingerprintOf(envelope),
    meshId: sender.meshId,
    brokerMessageId: ports.nextId(),
    envelope,
    mentions,
    acceptedAtMs,
    expiresAtMs: ports.dedupeRetentionMs === undefined ? undefined : acceptedAtMs + ports.dedupeRetentionMs,
  };
}

async function isConsumed({ store }: PrepareSendsPorts, send: SendToAccept): Promise<boolean> {
  return (await store.findAccepted(send.meshId, send.clientMessageId)) !== undefined;
}

async function checkSealed(ports: PrepareSendsPorts, { meshId, envelope }: SendToAccept, index: number): Promise<void> {
  if (isUnsealedDm(envelope) && !(await ports.takesUnsealed(meshId))) {
    throw new MeshError("dm_not_sealed", undefined, { index });
  }
}

function checkSize({ inlineBytes }: PrepareSendsPorts, { envelope }: SendToAccept, index: number): void {
  if (envelope.body.length <= inlineBytes) return;
  throw new MeshError("payload_too_large", undefined, { limit_bytes: inlineBytes, index });
}

async function spendBudget(ports: PrepareSendsPorts, send: SendToAccept): Promise<void> {
  const refusal = await spendUnit(ports, send.meshId, send.clientMessageId, send.acceptedAtMs);
  // Another try of the same id may have committed since the look-up, and what is consumed is not a matter of budget.
  if (refusal !== undefined && !(await isConsumed(ports, send))) throw refusal;
}
