// Goes through outbox, history and inbox, and asks the broker about each record. core/audit.ts decides what agrees. A record
// that seems to disagree may just have changed, so it is read and asked about once more before it is listed.
import type { AuditReport } from "@claudemesh/client/daemon";
import type { LinkOutcome } from "@claudemesh/client/internal/link-contract";
import { limits as protocolLimits } from "@claudemesh/protocol/messages/limits";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import {
  AuditLedger,
  type FateWord,
  type InboxAuditRow,
  isAuditedAtBroker,
  judgeAbsent,
  judgeDirectSend,
  judgeInboxRow,
  judgeInboxTombstones,
  judgeOutbox,
  judgeRemovedSend,
  judgeRow,
  judgeTombstone,
  type StateWord,
  type Verdict,
} from "../core/audit.ts";
import { readFenceAnswer } from "../core/fence-answer.ts";
import { type HistoryPage, historyPageItems, readHistoryPage } from "../core/history-page.ts";
import { isRecipient } from "../core/inbox-message.ts";
import { type Delivery, type MessageState, readMessageState } from "../core/message-state.ts";
import type { OutboxRecord } from "../core/outbox-row.ts";
import type { AuditReading, BrokerLink, Clock, OutboxStore } from "../ports.ts";
import type { NegotiatedLimits } from "./negotiated-limits.ts";

export type AuditPorts = {
  readonly ownPubkey: string;
  readonly outbox: Pick<OutboxStore, "list" | "inspect" | "find">;
  readonly auditing: AuditReading;
  readonly link: Pick<BrokerLink, "request" | "status" | "whenOnline">;
  readonly limits: Pick<NegotiatedLimits, "inlineBytes" | "requeueProvesNothingBefore">;
  readonly clock: Pick<Clock, "nowMs">;
  readonly requestTimeoutMs: number;
};

const questionsAtOnce = 64;
const rowsPerPage = 256;

/** A caller that comes while an audit runs gets the report of that one, so that many callers cost the broker no more than one. */
export function createAudit(ports: AuditPorts): () => Promise<AuditReport> {
  let running: Promise<AuditReport> | undefined;
  return () => {
    running ??= new Audit(ports).run().finally(() => {
      running = undefined;
    });
    return running;
  };
}

/** The broker cannot be asked: the audit ends with what it has. */
class BrokerAway extends Error {}

class Audit {
  readonly #ports: AuditPorts;
  readonly #ledger = new AuditLedger();

  constructor(ports: AuditPorts) {
    this.#ports = ports;
  }

  async run(): Promise<AuditReport> {
    this.#ledger.add(judgeOutbox(this.#ports.auditing.outbox()));
    this.#ledger.add(judgeInboxTombstones(this.#ports.auditing.inboxTombstones()));
    try {
      await this.#auditRows();
      await this.#auditTombstones();
      await this.#auditHistory();
      await this.#auditInbox();
      return this.#ledger.report(true);
    } catch (error) {
      if (!(error instanceof BrokerAway)) throw error;
      return this.#ledger.report(false);
    }
  }

  async #auditRows(): Promise<void> {
    const { outbox } = this.#ports;
    let after: string | undefined;
    do {
      const page = outbox.list(undefined, { after, limit: rowsPerPage });
      await this.#addEach(page.items.filter(isAuditedAtBroker), async (row) => {
        const verdict = await this.#examineRow(row);
        const again = verdict.imbalances.length === 0 ? undefined : outbox.inspect(row.id)?.row;
        return again === undefined ? verdict : this.#examineRow(again);
      });
      after = page.nextCursor;
    } while (after !== undefined);
  }

  async #examineRow(row: OutboxRecord): Promise<Verdict> {
    const { limits, clock } = this.#ports;
    const fate = await this.#askFate(row);
    const storedId = row.status === "done" && fate.fate === "committed" ? row.broker_message_id : null;
    const state: StateWord = storedId === null ? { type: "not_asked" } : await this.#askState(storedId);
    return judgeRow(row, fate, state, row.enqueued_at <= limits.requeueProvesNothingBefore(clock.nowMs()));
  }

  /** Only of those that the broker cannot have forgotten: of others its silence proves nothing. */
  async #auditTombstones(): Promise<void> {
    const { auditing, limits, clock } = this.#ports;
    const enqueuedAfter = limits.requeueProvesNothingBefore(clock.nowMs());
    let after = "";
    for (;;) {
      const page = auditing.tombstonePage(after, enqueuedAfter, rowsPerPage);
      await this.#addEach(page, async (row) => {
        const { clientMessageId: client_message_id, wireFingerprint: wire_fingerprint } = row;
        return judgeTombstone(row, await this.#askFate({ client_message_id, wire_fingerprint }));
      });
      const last = page.at(-1);
      if (last === undefined) return;
      after = last.id;
    }
  }

  /** Finds what is at the broker and not here: sends that went past the outbox, and deliveries without an inbox row. */
  async #auditHistory(): Promise<void> {
    const { ownPubkey, outbox, auditing } = this.#ports;
    let after: number | undefined = 0;
    while (after !== undefined) {
      const page: HistoryPage = await this.#readHistory(after);
      const own = page.items.filter((item) => item.sender_pubkey === ownPubkey);
      for (const { client_message_id } of own) {
        if (outbox.find(client_message_id) !== undefined) continue;
        this.#ledger.add(auditing.wasRemoved(client_message_id) ? judgeRemovedSend() : judgeDirectSend());
      }
      const absent = page.items.filter((item) => isRecipient(item, ownPubkey) && !auditing.findReceived(item));
      await this.#addEach(absent, async (item) => {
        const delivery = (await this.#askOwnDelivery(item.broker_message_id)).own;
        // A delivery is settled after its row is durable, so that a row that is not here now was not there then.
        return judgeAbsent(item.client_message_id, auditing.findReceived(item) ? undefined : delivery);
      });
      after = page.nextAfter;
    }
  }

  async #auditInbox(): Promise<void> {
    const { auditing } = this.#ports;
    let after = "";
    for (;;) {
      const rows = auditing.inboxPage(after, rowsPerPage);
      await this.#addEach(rows, async (row) => {
        const verdict = await this.#examineReceived(row);
        return verdict.imbalances.length === 0 ? verdict : this.#examineReceived(row);
      });
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.id;
    }
  }

  async #examineReceived(row: InboxAuditRow): Promise<Verdict> {
    const { word, own } = await this.#askOwnDelivery(row.brokerMessageId);
    return judgeInboxRow(row, word, own);
  }

  /** Judges some items at a time. After one has failed no further one begins, and all have ended when this does. */
  async #addEach<Item>(items: readonly Item[], judge: (item: Item) => Promise<Verdict>): Promise<void> {
    const waiting = items.values();
    let failed = false;
    const work = async () => {
      for (const item of waiting) {
        if (failed) return;
        try {
          this.#ledger.add(await judge(item));
        } catch (error) {
          failed = true;
          throw error;
        }
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: questionsAtOnce }, work));
    const failure = ends.find((end) => end.status === "rejected");
    if (failure !== undefined) throw failure.reason;
  }

  async #askFate(row: Pick<OutboxRecord, "client_message_id" | "wire_fingerprint">): Promise<FateWord> {
    const fingerprint = Buffer.from(row.wire_fingerprint).toString("hex");
    const outcome = await this.#ask("fate", { client_message_id: row.client_message_id, fingerprint });
    if (outcome.status !== 200) throw new BrokerAway();
    const answer = readFenceAnswer(outcome);
    const { fate } = outcome.body as Readonly<Record<string, unknown>>;
    // An answer that cannot be understood says nothing about the row.
    if (answer.fate === "unknown" && fate !== "none") throw new BrokerAway();
    return answer.fate === "committed" ? answer : { fate: "not_committed" };
  }

  async #askState(brokerMessageId: string): Promise<StateWord> {
    const first = await this.#askStatePage(brokerMessageId, undefined, protocolLimits.pageItems);
    if (first === undefined) return { type: "not_found" };
    const all = [...first.deliveries];
    let { nextCursor } = first;
    while (nextCursor !== undefined) {
      const next = await this.#askStatePage(brokerMessageId, nextCursor, protocolLimits.pageItems);
      all.push(...(next?.deliveries ?? []));
      nextCursor = next?.nextCursor;
    }
    return { type: "found", state: first, all };
  }

  /** However many recipients there are, one page of one delivery is enough. */
  async #askOwnDelivery(brokerMessageId: string): Promise<{ word: StateWord; own: Delivery | undefined }> {
    const { ownPubkey } = this.#ports;
    const state = await this.#askStatePage(brokerMessageId, keyBefore(ownPubkey), 1);
    if (state === undefined) return { word: { type: "not_found" }, own: undefined };
    const own = state.deliveries.find(({ recipientPubkey }) => recipientPubkey === ownPubkey);
    return { word: { type: "found", state, all: state.deliveries }, own };
  }

  async #askStatePage(id: string, after: string | undefined, limit: number): Promise<MessageState | undefined> {
    const input = { broker_message_id: id, limit, ...(after === undefined ? {} : { after }) };
    const { status, body } = await this.#ask("message.state", input);
    if (status === 404) return undefined;
    const state = status === 200 ? readMessageState(body) : undefined;
    if (state === undefined) throw new BrokerAway();
    return state;
  }

  async #readHistory(after: number): Promise<HistoryPage> {
    const { link, limits, requestTimeoutMs } = this.#ports;
    if (link.status().state !== "online") throw new BrokerAway();
    for (let halvings = 0; ; halvings++) {
      const limit = historyPageItems(limits.inlineBytes(), halvings);
      const outcome = await link.request("history", { after, limit }, { timeoutMs: requestTimeoutMs });
      const page = outcome.type === "answered" && outcome.status === 200 ? readHistoryPage(outcome.body) : undefined;
      const isForward = page?.nextAfter === undefined || page.nextAfter > after;
      if (page !== undefined && isForward) return page;
      // The page may have been larger than a frame may be, which costs the connection: ask for less on the next one.
      if (limit === 1 || !(await link.whenOnline(requestTimeoutMs))) throw new BrokerAway();
    }
  }

  async #ask(operation: OperationName, input: object): Promise<Extract<LinkOutcome, { type: "answered" }>> {
    const { link, requestTimeoutMs } = this.#ports;
    if (link.status().state !== "online") throw new BrokerAway();
    const outcome = await link.request(operation, input, { timeoutMs: requestTimeoutMs });
    if (outcome.type !== "answered") throw new BrokerAway();
    return outcome;
  }
}

/** The largest key below this one; undefined below the smallest. */
function keyBefore(pubkey: string): string | undefined {
  const number = BigInt(`0x${pubkey}`);
  return number === 0n ? undefined : (number - 1n).toString(16).padStart(pubkey.length, "0");
}
