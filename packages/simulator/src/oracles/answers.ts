// The answers that callers got, and whether two of them about the same thing can both be true. Only answers count:
// a call without an answer may have done its work or not.
import type { Answer } from "../world/daemon.ts";
import type { HistoryLedger } from "./history-ledger.ts";
import { Violation } from "./violation.ts";

export type AckedSend = {
  readonly daemon: number;
  readonly clientMessageId: string;
  readonly outboxId: string;
  readonly fingerprint: string;
};

export class Answers {
  readonly #ledger: HistoryLedger;
  readonly #senders: readonly string[];
  readonly #acked = new Map<string, AckedSend>();
  readonly #new = new Set<string>();
  /** Ids under which a caller tried to say something else, so that a refusal is no surprise. */
  readonly contested = new Set<string>();
  /** What may stand in an inbox under an id. */
  readonly #bodies = new Map<string, Set<string>>();

  /** `senders`: the daemons' keys, in their order. */
  constructor(ledger: HistoryLedger, senders: readonly string[]) {
    this.#senders = senders;
    this.#ledger = ledger;
  }

  get acked(): Iterable<AckedSend> {
    return this.#acked.values();
  }

  /** An id is about to be used for this. */
  expectBody(clientMessageId: string, body: string): void {
    const bodies = this.#bodies.get(clientMessageId) ?? new Set();
    bodies.add(body);
    this.#bodies.set(clientMessageId, bodies);
  }

  bodiesOf(clientMessageId: string): ReadonlySet<string> {
    return this.#bodies.get(clientMessageId) ?? new Set();
  }

  noteSend(daemon: number, { status, body }: Answer): void {
    if (status !== 200 && status !== 202) return;
    const clientMessageId = String(body.client_message_id);
    const key = `${daemon}/${clientMessageId}`;
    const acked: AckedSend = {
      daemon,
      clientMessageId,
      outboxId: String(body.outbox_id),
      fingerprint: String(body.request_fingerprint),
    };
    const before = this.#acked.get(key) ?? acked;
    if (before.outboxId !== acked.outboxId || before.fingerprint !== acked.fingerprint) {
      throw new Violation("id_answered_twice", `${key} was row ${before.outboxId}, and now ${acked.outboxId}`);
    }
    if (body.duplicate === false) {
      if (this.#new.has(key)) throw new Violation("id_answered_twice", `${key} was new twice`);
      this.#new.add(key);
    }
    this.#acked.set(key, before);
    if (status === 200) this.#checkStored(daemon, clientMessageId, body);
  }

  /** A requeue that was answered is an accepted send under its new id. */
  noteRequeued(daemon: number, { status, body }: Answer, fingerprint: string | undefined): void {
    if (status !== 200) return;
    const { client_message_id, outbox_id } = body.new as { client_message_id: string; outbox_id: string };
    const key = `${daemon}/${client_message_id}`;
    if (this.#acked.has(key)) throw new Violation("id_answered_twice", `${key} was requeued into twice`);
    const acked = { daemon, clientMessageId: client_message_id, outboxId: outbox_id, fingerprint: fingerprint ?? "" };
    this.#acked.set(key, acked);
  }

  #checkStored(daemon: number, clientMessageId: string, body: Answer["body"]): void {
    const committed = this.#ledger.find(this.#senders[daemon] ?? "", clientMessageId);
    if (committed?.brokerMessageId === body.broker_message_id && committed?.historyId === body.history_id) return;
    throw new Violation("stored_send_lost", `${clientMessageId} was answered as ${String(body.broker_message_id)}`);
  }
}
