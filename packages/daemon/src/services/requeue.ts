// Requeueing one row: `POST /v1/outbox/requeue` without HTTP. Where the broker may have accepted the old row, it is asked
// to fence it before a second row says the same under another id. Without an answer the request is refused, never guessed.

import assert from "node:assert/strict";
import type { Requeued } from "@claudemesh/client/daemon";
import type { Sealer } from "@claudemesh/client/seal";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import { isClientMessageId } from "@claudemesh/protocol/messages/client-message-id";
import {
  applyPatch,
  type ContentPatch,
  type RequeueRequest,
  readPatch,
} from "@claudemesh/protocol/messages/requeue-request";
import { type FenceAnswer, readFenceAnswer } from "../core/fence-answer.ts";
import type { PatchedColumns, RequeueOrder, RequeueOutcome, RequeueTarget, StoredContent } from "../core/requeue.ts";
import type { BrokerLink, Clock, Log, OutboxStore, RequeueStore } from "../ports.ts";
import { type ComposePorts, composeRow } from "./enqueue-send.ts";
import type { NegotiatedLimits } from "./negotiated-limits.ts";
import { admitWithRoom, type StorageGauge } from "./storage-gauge.ts";

export type RequeuePorts = {
  readonly requeues: RequeueStore;
  readonly outbox: Pick<OutboxStore, "commitLate">;
  readonly link: Pick<BrokerLink, "request" | "status">;
  readonly limits: Pick<NegotiatedLimits, "requeueProvesNothingBefore">;
  readonly gauge: Pick<StorageGauge, "admit" | "makeRoom">;
  readonly compose: ComposePorts;
  readonly sealer: Pick<Sealer, "open" | "openVersion2">;
  readonly nextClientMessageId: () => string;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Log;
  readonly requestTimeoutMs: number;
  /** Throws where a new row would meet a wall: this member is none any more, or the destination takes no messages. */
  readonly admitSuccessor: (destination: Destination) => Promise<void>;
  /** A row that was enqueued then may be due: the new one, or the old one again. */
  readonly onDue: (enqueuedAt: number) => void;
  /** The caller had a message sent again that the broker may have taken and forgotten. */
  readonly onDespiteForgotten?: () => void;
};

export async function requeueRow(ports: RequeuePorts, request: RequeueRequest): Promise<Requeued> {
  const { new_client_id: givenId, patch_payload: patch, accept_duplicate: acceptDuplicate = false } = request;
  if (givenId !== undefined && !isClientMessageId(givenId)) {
    throw new MeshError("invalid_client_message_id", undefined, { field: "new_client_id" });
  }
  const contentPatch = patch === undefined ? undefined : readPatch(patch);
  const row = ports.requeues.find(request.id);
  if (row === undefined) throw new MeshError("not_found", `The outbox has no row ${request.id}.`);
  // Comes before every check whose result may change later, so that an exact retry gets the row's successor in its answer.
  if (row.status !== "pending" && row.status !== "dead") throw notRequeueable(row);
  if (givenId !== undefined && ports.requeues.isConsumed(givenId)) throw consumed(givenId);
  const newClientMessageId = givenId ?? ports.nextClientMessageId();
  const stored = ports.requeues.content(row.id);
  assert(stored !== undefined, "a row that is not done keeps its payload");
  const patched = composeSuccessor(ports, row, stored, { clientMessageId: newClientMessageId, patch: contentPatch });
  await ports.admitSuccessor(stored.destination);
  await admitWithRoom(ports.gauge, patched?.payload.length ?? row.payloadBytes);
  return new Requeue(ports, row, { newClientMessageId, patched, acceptDuplicate }).run();
}

/**
 * What the new row says. A sealed payload of version "3" holds the id, so another id needs another payload, even where
 * nothing else changes. Undefined where the new row takes the columns of the old one as they are.
 */
function composeSuccessor(
  ports: RequeuePorts,
  row: RequeueTarget,
  stored: StoredContent,
  { clientMessageId, patch }: { readonly clientMessageId: string; readonly patch: ContentPatch | undefined },
): PatchedColumns | undefined {
  if (patch === undefined && row.envelopeVersion !== "3") return undefined;
  const { to, destination, priority, canonicalMeta, replyToId } = stored;
  const body = patch?.body ?? openStored(ports, stored);
  if (body === undefined) throw new MeshError("payload_unreadable", undefined, { outbox_id: row.id });
  const written = { body, priority, canonicalMeta, replyToId };
  const content = patch === undefined ? written : applyPatch(written, patch);
  return composeRow(ports.compose, { clientMessageId, to, content }, destination);
}

/** The body as it was written. */
function openStored({ sealer }: RequeuePorts, stored: StoredContent): Uint8Array | undefined {
  const box = { peer: stored.destination.ref, sealed: stored.body };
  switch (stored.envelopeVersion) {
    case "1":
      return stored.body;
    case "2":
      return sealer.openVersion2(box);
    case "3":
      return sealer.open(box)?.body;
  }
}

type Wanted = Pick<RequeueOrder, "newClientMessageId" | "patched" | "acceptDuplicate">;

/** What the broker had to say, as far as it matters for sending the message again. */
type BrokerWord =
  | Extract<FenceAnswer, { fate: "committed" }>
  | { readonly fate: "never_committed" }
  | { readonly fate: "unknown"; readonly reason: UnknownReason };

type KnownOutcome = Exclude<RequeueOutcome, { type: "not_found" }>;

/** What became of an order, and the row that stands for the message from then on if it was carried out. */
type Ordered = { readonly outcome: KnownOutcome; readonly newId: string; readonly enqueuedAt: number };

type UnknownReason = "broker_not_reachable" | "broker_gave_no_answer" | "older_than_dedupe_window";

class Requeue {
  readonly #ports: RequeuePorts;
  readonly #row: RequeueTarget;
  readonly #wanted: Wanted;

  constructor(ports: RequeuePorts, row: RequeueTarget, wanted: Wanted) {
    this.#ports = ports;
    this.#row = row;
    this.#wanted = wanted;
  }

  async run(): Promise<Requeued> {
    const ordered = await this.#order({ provenUncommitted: false, despiteUnknownFate: false });
    return ordered.outcome.type === "fate_unknown" ? this.#settleFate() : this.#answer(ordered.outcome, ordered);
  }

  /** While the broker is asked, no new try of the row begins; one that did would only be in the way. */
  async #settleFate(): Promise<Requeued> {
    const { requeues, clock, requestTimeoutMs, onDue } = this.#ports;
    const held = await requeues.holdBack(this.#row.id, clock.nowMs() + requestTimeoutMs);
    try {
      return await this.#askAndRequeue();
    } catch (error) {
      if (held.type === "held_back") {
        await requeues.bringForward(this.#row.id, held.wasDueAt);
        onDue(this.#row.enqueuedAt);
      }
      throw error;
    }
  }

  async #askAndRequeue(): Promise<Requeued> {
    const word = await this.#askBroker();
    if (word.fate === "committed") {
      const isNow = await this.#ports.outbox.commitLate(this.#row.id, word, this.#ports.clock.nowMs());
      if (isNow) throw alreadyAccepted(this.#row, word.brokerMessageId, word.historyId);
    }
    const ordered = await this.#order({
      provenUncommitted: word.fate === "never_committed",
      despiteUnknownFate: word.fate === "unknown" && this.#wanted.acceptDuplicate,
    });
    const { outcome } = ordered;
    if (outcome.type === "requeued" && word.fate === "unknown" && this.#isTooOldForProof()) {
      this.#ports.onDespiteForgotten?.();
    }
    if (outcome.type === "fate_unknown") {
      throw fateUnknown(this.#row, word.fate === "unknown" ? word.reason : "broker_gave_no_answer");
    }
    // A late answer came in while the broker was asked.
    if (outcome.type === "not_requeueable" && outcome.row.status === "done") {
      throw alreadyAccepted(outcome.row, outcome.row.brokerMessageId, outcome.row.historyId);
    }
    return this.#answer(outcome, ordered);
  }

  /** What is too old for proof is only asked about: a fence would end its tries and prove nothing. */
  async #askBroker(): Promise<BrokerWord> {
    const { link, requestTimeoutMs } = this.#ports;
    if (link.status().state !== "online") return { fate: "unknown", reason: "broker_not_reachable" };
    const tooOld = this.#isTooOldForProof();
    const outcome = await link.request(
      tooOld ? "fate" : "fence",
      {
        client_message_id: this.#row.clientMessageId,
        fingerprint: Buffer.from(this.#row.wireFingerprint).toString("hex"),
      },
      { timeoutMs: requestTimeoutMs },
    );
    const answer = readFenceAnswer(outcome);
    if (answer.fate === "committed") return answer;
    if (tooOld) return { fate: "unknown", reason: "older_than_dedupe_window" };
    return answer.fate === "unknown"
      ? { fate: "unknown", reason: "broker_gave_no_answer" }
      : { fate: "never_committed" };
  }

  #isTooOldForProof(): boolean {
    const { limits, clock } = this.#ports;
    return this.#row.enqueuedAt <= limits.requeueProvesNothingBefore(clock.nowMs());
  }

  /** The new row's id is made for the moment at which it appears, so that readers who page by id do not miss it. */
  async #order(proof: Pick<RequeueOrder, "provenUncommitted" | "despiteUnknownFate">): Promise<Ordered> {
    const newId = this.#ports.compose.nextOutboxId();
    const nowMs = this.#ports.clock.nowMs();
    const outcome = await this.#ports.requeues.requeue({
      ...this.#wanted,
      ...proof,
      oldId: this.#row.id,
      newId,
      nowMs,
    });
    assert(outcome.type !== "not_found", "rows are never removed without a tombstone");
    return { outcome, newId, enqueuedAt: nowMs };
  }

  #answer(outcome: Exclude<KnownOutcome, { type: "fate_unknown" }>, { newId, enqueuedAt }: Ordered): Requeued {
    const { newClientMessageId, acceptDuplicate } = this.#wanted;
    if (outcome.type === "not_requeueable") throw notRequeueable(outcome.row);
    if (outcome.type === "client_id_consumed") throw consumed(newClientMessageId);
    const { id, clientMessageId } = this.#row;
    const fields = { event: "row_requeued", outbox_id: id, new_outbox_id: newId, accept_duplicate: acceptDuplicate };
    this.#ports.log.info(fields, "a row was retired, and its message has a new id");
    this.#ports.onDue(enqueuedAt);
    return {
      old: { id, client_message_id: clientMessageId, status: "aborted" },
      new: { outbox_id: newId, client_message_id: newClientMessageId },
    };
  }
}

function notRequeueable(row: RequeueTarget): MeshError {
  const { successor } = row;
  return new MeshError("not_requeueable", `The row is ${row.status}; only dead or pending rows can be requeued.`, {
    ...idsOf(row),
    status: row.status,
    ...(row.brokerMessageId === undefined ? {} : { broker_message_id: row.brokerMessageId }),
    ...(successor === undefined
      ? {}
      : {
          successor: {
            outbox_id: successor.id,
            client_message_id: successor.clientMessageId,
            status: successor.status,
          },
        }),
  });
}

function consumed(newClientMessageId: string): MeshError {
  return new MeshError("client_id_consumed", undefined, { field: "new_client_id", new_client_id: newClientMessageId });
}

function alreadyAccepted(row: RequeueTarget, brokerMessageId?: string, historyId?: number): MeshError {
  const found = { status: "done", broker_message_id: brokerMessageId, history_id: historyId };
  return new MeshError("already_accepted", undefined, { ...idsOf(row), ...found });
}

const unknownReasons: Readonly<Record<UnknownReason, string>> = {
  broker_not_reachable: "and it cannot be asked now",
  broker_gave_no_answer: "and it gave no clear answer",
  older_than_dedupe_window: "and the row is so old that it may have forgotten it",
};

function fateUnknown(row: RequeueTarget, reason: UnknownReason): MeshError {
  const message = `The broker may have accepted this row, ${unknownReasons[reason]}; nothing was changed.`;
  return new MeshError("fate_unknown", message, { ...idsOf(row), status: row.status, reason });
}

function idsOf(row: RequeueTarget): Record<string, unknown> {
  return { outbox_id: row.id, client_message_id: row.clientMessageId };
}
