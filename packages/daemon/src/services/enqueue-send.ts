// Queueing one send: `POST /v1/send` without HTTP. A send whose id is known is answered from its row or tombstone, before any
// check that could fail later; a new one is on disk before it is answered.
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
import type { Inserted, OutboxStore } from "../ports.ts";
import type { Drain } from "./drain.ts";
import type { Expiry } from "./expire.ts";
import type { Membership } from "./membership.ts";
import { mustAskAbout, type ResolvePorts, resolveLocally, resolveReachable } from "./resolve-destination.ts";
import type { StorageGauge } from "./storage-gauge.ts";

export type StorePorts = {
  readonly outbox: Pick<OutboxStore, "insert">;
  readonly drain: Pick<Drain, "takeRoom" | "returnRoom" | "begin" | "wake">;
  readonly expiry: Pick<Expiry, "stored">;
};

export type EnqueuePorts = ResolvePorts & {
  readonly outbox: Pick<OutboxStore, "find">;
  readonly gauge: Pick<StorageGauge, "admit" | "makeRoom">;
  readonly membership: Pick<Membership, "require">;
  /** What the answer to a queued send says about its way to the broker. */
  readonly way: () => WayFacts;
  readonly sealer: Pick<Sealer, "seal">;
  readonly sha256: Sha256;
  readonly nowMs: () => number;
  readonly nextOutboxId: () => string;
  /** For sends that come without an id. */
  readonly nextClientMessageId: () => string;
  readonly inlineBytes: () => number;
} & StorePorts;

/** Empty where rows leave at once. */
export type WayFacts = Pick<SendBody, "broker" | "rate_limited" | "membership_ended_at">;

/** A request that is sound in itself. */
type Send = {
  readonly clientMessageId: string;
  readonly to: string;
  readonly address: Address;
  readonly content: SendContent;
};

export async function enqueueSend(
  ports: EnqueuePorts,
  request: SendRequest,
  idempotencyKey: string | undefined,
): Promise<SendAnswer> {
  const content = readSendContent(request);
  const address = parseAddress(request.to);
  const givenId = chooseClientMessageId(idempotencyKey, request.client_message_id);
  const send = { clientMessageId: givenId ?? ports.nextClientMessageId(), to: request.to, address, content };
  let row = composeFromWhatIsKnown(ports, send);
  if (row instanceof MeshError || row === "ask_the_broker") {
    // A send that is known is answered all the same, whatever a new one would be refused for.
    const stored = givenId === undefined ? undefined : ports.outbox.find(givenId);
    if (stored !== undefined) return answerStored(ports, send, stored);
    if (row instanceof MeshError) row = await composeWithRoom(ports, send, row);
    if (row === "ask_the_broker") row = composeRow(ports, send, await resolveReachable(ports, address));
  }
  const pinning = address.type === "member_name" ? ports.pins.use(address.name, row.destination.ref) : undefined;
  // The look-up and the insert are one transaction, and mostly the only one: looking first would cost a second.
  const inserted = await storeOrFind(ports, row, givenId, pinning);
  if (inserted.type === "known") return answerStored(ports, send, inserted.send);
  return withWay(ports, answerInserted(row.clientMessageId, row.id, row.requestFingerprint), row.destination);
}

/**
 * Stores a new row. Where the drain has room for it, it is stored as inflight and its frame leaves at once, which saves it
 * a second transaction. Otherwise, and where a due row stands before it, it is pending until the drain claims it.
 */
export async function storeSend({ outbox, drain, expiry }: StorePorts, row: NewOutboxRow): Promise<Inserted> {
  const hasRoom = drain.takeRoom(row);
  let inserted: Inserted | undefined;
  try {
    inserted = await outbox.insert(row, hasRoom ? "inflight" : "pending");
  } finally {
    if (hasRoom && inserted?.type !== "inflight") drain.returnRoom(row);
  }
  if (inserted.type === "known") return inserted;
  expiry.stored(row.enqueuedAt);
  if (inserted.type === "inflight") drain.begin(row);
  else drain.wake();
  return inserted;
}

/** The answer says where a message waits on this host, and where it will have no readers. */
function withWay(ports: EnqueuePorts, { status, body }: SendAnswer, destination: Destination): SendAnswer {
  const hasReaders = ports.destinations.known(destination)?.hasRecipients ?? true;
  return { status, body: { ...body, ...ports.way(), ...(hasReaders ? {} : { subscribers: 0 }) } };
}

/** A disk that fails takes more with it than new sends, a whole transaction or a name's pin: a retry has its row all the same. */
async function storeOrFind(
  ports: EnqueuePorts,
  row: NewOutboxRow,
  givenId: string | undefined,
  pinning: Promise<void> | undefined,
): Promise<Inserted> {
  try {
    if (pinning !== undefined) await pinning;
    return await storeSend(ports, row);
  } catch (error) {
    const isDisk = error instanceof StorageError && (error.kind === "disk_full" || error.kind === "io");
    const stored = isDisk && givenId !== undefined ? ports.outbox.find(givenId) : undefined;
    // Its own row is no answer: that one is not known to be on disk.
    if (stored === undefined || stored.outboxId === row.id) throw error;
    return { type: "known", send: stored };
  }
}

/** The row as it would be inserted, or what prevents that here and now. */
function composeFromWhatIsKnown(ports: EnqueuePorts, send: Send): NewOutboxRow | MeshError | "ask_the_broker" {
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

/** Composes the row again where the disk had no room for it and pruning done rows has made some. */
async function composeWithRoom(
  ports: EnqueuePorts,
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
function answerStored(ports: EnqueuePorts, send: Send, stored: StoredSend): SendAnswer {
  const { clientMessageId, to, address, content } = send;
  const destination = to === stored.to ? stored.destination : resolveOrNameItself(ports, address);
  const offered = fingerprint(ports.sha256, { ...content, version: "1", destination });
  const decision = decideSend(stored, offered);
  assert(decision.type !== "insert", "an id that stands for something is never inserted");
  const answer = answerExisting(clientMessageId, stored, decision, offered);
  return answer.status === 202 ? withWay(ports, answer, destination) : answer;
}

function resolveOrNameItself(ports: EnqueuePorts, address: Address): Destination {
  const resolution = resolveLocally(ports, address);
  return resolution.type === "found" ? resolution.destination : { kind: "dm", ref: `@${resolution.name}` };
}

export type ComposePorts = Pick<EnqueuePorts, "sealer" | "sha256" | "nowMs" | "nextOutboxId" | "inlineBytes">;

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
