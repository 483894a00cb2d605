// Accepting one send: `POST /v1/send` without HTTP. An id that stands for something is answered from it, before any
// check that a later world could fail; a new one is durable before its answer exists.
import assert from "node:assert/strict";
import type { SendBody } from "@claudemesh/client/daemon";
import { composeEnvelope, type Sealer } from "@claudemesh/client/seal";
import { MeshError } from "@claudemesh/protocol/errors";
import { type Address, type Destination, parseAddress } from "@claudemesh/protocol/messages/addresses";
import { chooseClientMessageId } from "@claudemesh/protocol/messages/client-message-id";
import type { Envelope } from "@claudemesh/protocol/messages/envelope";
import { fingerprint, type Sha256 } from "@claudemesh/protocol/messages/fingerprint";
import {
  answerExisting,
  answerInserted,
  decideSend,
  type SendAnswer,
} from "@claudemesh/protocol/messages/send-decision";
import { readSendContent, type SendContent, type SendRequest } from "@claudemesh/protocol/messages/send-request";
import { StorageError } from "@claudemesh/storage/errors";
import type { NewOutboxRow, StoredSend } from "../core/outbox-row.ts";
import type { OutboxStore } from "../ports.ts";
import type { Membership } from "./membership.ts";
import { mustAskAbout, type ResolvePorts, resolveLocally, resolveReachable } from "./resolve-destination.ts";
import type { StorageGauge } from "./storage-gauge.ts";

export type AcceptPorts = ResolvePorts & {
  readonly outbox: Pick<OutboxStore, "find">;
  /** Stores a row that is then on its way, unless its id stands for something: then that is returned. */
  readonly store: (row: NewOutboxRow) => Promise<StoredSend | undefined>;
  readonly gauge: Pick<StorageGauge, "admit" | "makeRoom">;
  readonly membership: Pick<Membership, "require">;
  /** What the sender of a queued message should hear about its way to the broker. */
  readonly way: () => WayFacts;
  readonly sealer: Pick<Sealer, "seal">;
  readonly sha256: Sha256;
  readonly nowMs: () => number;
  readonly nextOutboxId: () => string;
  /** For senders who bring no id of their own. */
  readonly nextClientMessageId: () => string;
  readonly inlineBytes: () => number;
};

/** Empty where rows leave at once. */
export type WayFacts = Pick<SendBody, "broker" | "rate_limited" | "membership_ended_at">;

/** A request that is sound in itself. */
type Send = {
  readonly clientMessageId: string;
  readonly to: string;
  readonly address: Address;
  readonly content: SendContent;
};

export async function acceptSend(
  ports: AcceptPorts,
  request: SendRequest,
  idempotencyKey: string | undefined,
): Promise<SendAnswer> {
  const content = readSendContent(request);
  const address = parseAddress(request.to);
  const givenId = chooseClientMessageId(idempotencyKey, request.client_message_id);
  const send = { clientMessageId: givenId ?? ports.nextClientMessageId(), to: request.to, address, content };
  let row = composeFromWhatIsKnown(ports, send);
  if (row instanceof MeshError || row === "ask_the_broker") {
    // Whatever stands in the way of a new send, one that is known is answered all the same.
    const stored = givenId === undefined ? undefined : ports.outbox.find(givenId);
    if (stored !== undefined) return answerStored(ports, send, stored);
    if (row instanceof MeshError) row = await composeWithRoom(ports, send, row);
    if (row === "ask_the_broker") row = composeRow(ports, send, await resolveReachable(ports, address));
  }
  const pinning = address.type === "member_name" ? ports.pins.use(address.name, row.destination.ref) : undefined;
  // The look-up and the insert are one transaction, and mostly the only one: looking first would cost a second.
  const stored = await storeUnlessKnown(ports, row, givenId, pinning);
  if (stored !== undefined) return answerStored(ports, send, stored);
  const inserted = answerInserted(row.clientMessageId, row.id, row.requestFingerprint);
  return withWay(ports, inserted, row.destination);
}

/** A message that waits here, or that nobody is going to read, is not called sent without a word. */
function withWay(ports: AcceptPorts, { status, body }: SendAnswer, destination: Destination): SendAnswer {
  const hasReaders = ports.destinations.known(destination)?.hasRecipients ?? true;
  return { status, body: { ...body, ...ports.way(), ...(hasReaders ? {} : { subscribers: 0 }) } };
}

/** A disk that fails takes more with it than new sends, a whole transaction or a name's pin: a retry has its row all the same. */
async function storeUnlessKnown(
  ports: AcceptPorts,
  row: NewOutboxRow,
  givenId: string | undefined,
  pinning: Promise<void> | undefined,
): Promise<StoredSend | undefined> {
  try {
    if (pinning !== undefined) await pinning;
    return await ports.store(row);
  } catch (error) {
    const isDisk = error instanceof StorageError && (error.kind === "disk_full" || error.kind === "io");
    const stored = isDisk && givenId !== undefined ? ports.outbox.find(givenId) : undefined;
    // Its own row is never answered for: that one is not known to be on disk.
    if (stored === undefined || stored.outboxId === row.id) throw error;
    return stored;
  }
}

/** The row as it would be inserted, or what stands in its way here and now. */
function composeFromWhatIsKnown(ports: AcceptPorts, send: Send): NewOutboxRow | MeshError | "ask_the_broker" {
  try {
    ports.membership.require();
    ports.gauge.admit(send.content.body.length);
    const resolution = resolveLocally(ports, send.address);
    if (resolution.type === "key_changed") return resolution.refusal;
    if (resolution.type !== "found" || mustAskAbout(ports, resolution.destination)) return "ask_the_broker";
    return composeRow(ports, send, resolution.destination);
  } catch (error) {
    if (error instanceof MeshError) return error;
    throw error;
  }
}

/** Once more, where what stood in its way was want of room and done rows could make some. */
async function composeWithRoom(
  ports: AcceptPorts,
  send: Send,
  refusal: MeshError,
): Promise<NewOutboxRow | "ask_the_broker"> {
  const isFull = refusal.code === "insufficient_storage";
  if (!isFull || !(await ports.gauge.makeRoom(send.content.body.length))) throw refusal;
  const row = composeFromWhatIsKnown(ports, send);
  if (row instanceof MeshError) throw row;
  return row;
}

/**
 * The same `to` means what it meant then. Another one is looked up in what is known here; a name that is not known
 * stands for itself, and no stored destination looks like that, so the answer is a mismatch.
 */
function answerStored(ports: AcceptPorts, send: Send, stored: StoredSend): SendAnswer {
  const { clientMessageId, to, address, content } = send;
  const destination = to === stored.to ? stored.destination : resolveOrNameItself(ports, address);
  const offered = fingerprint(ports.sha256, { ...content, version: "1", destination });
  const decision = decideSend(stored, offered);
  assert(decision.type !== "insert", "an id that stands for something is never inserted");
  const answer = answerExisting(clientMessageId, stored, decision, offered);
  return answer.status === 202 ? withWay(ports, answer, destination) : answer;
}

function resolveOrNameItself(ports: AcceptPorts, address: Address): Destination {
  const resolution = resolveLocally(ports, address);
  return resolution.type === "found" ? resolution.destination : { kind: "dm", ref: `@${resolution.name}` };
}

export type ComposePorts = Pick<AcceptPorts, "sealer" | "sha256" | "nowMs" | "nextOutboxId" | "inlineBytes">;

/** Direct messages are sealed here, once: what is stored now is sent byte for byte, however often it is tried. */
export function composeRow(ports: ComposePorts, send: Omit<Send, "address">, destination: Destination): NewOutboxRow {
  const { clientMessageId, to, content } = send;
  const { requestFingerprint, envelope } = composeEnvelope(ports, { clientMessageId, destination, content });
  checkWireBytes(ports, content, envelope);
  return {
    id: ports.nextOutboxId(),
    clientMessageId,
    requestFingerprint,
    wireFingerprint: envelope.version === "1" ? requestFingerprint : fingerprint(ports.sha256, envelope),
    to,
    destination,
    priority: content.priority,
    // Kept here also where it leaves inside the box alone: the row is shown with it.
    canonicalMeta: content.canonicalMeta,
    replyToId: content.replyToId,
    envelopeVersion: envelope.version,
    payload: envelope.body,
    enqueuedAt: ports.nowMs(),
  };
}

function checkWireBytes(ports: ComposePorts, content: SendContent, envelope: Envelope): void {
  const [wireBytes, limitBytes] = [envelope.body.length, ports.inlineBytes()];
  if (wireBytes <= limitBytes) return;
  const sealed =
    envelope.version === "1" ? "" : ` (${content.body.length} of body; meta and padding are sealed with it)`;
  throw new MeshError(
    "payload_too_large",
    `The message has ${wireBytes} bytes on the wire${sealed}, and the broker takes ${limitBytes}; send less, or split it.`,
    { wire_bytes: wireBytes, limit_bytes: limitBytes },
  );
}
