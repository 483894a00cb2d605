// Messages from the broker into the inbox. A delivery is acked only after its row is durable; one that was there
// already is acked too, or it would come again for ever.
import { limits } from "@claudemesh/protocol/messages/limits";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { type OpenSealed, readMessage, type Unreadable } from "../core/inbox-message.ts";
import { createLogLimiter } from "../core/log-limiter.ts";
import type { BrokerLink, Chance, Clock, InboxInsert, InboxStore, Log, Timer } from "../ports.ts";

export type ReceivePorts = {
  readonly ownPubkey: string;
  readonly inbox: Pick<InboxStore, "insert">;
  readonly link: Pick<BrokerLink, "request">;
  readonly sealer: OpenSealed;
  readonly nameOf: (pubkey: string) => string | undefined;
  readonly clock: Clock;
  readonly nextTurn: Chance["nextTurn"];
  readonly log: Log;
  readonly requestTimeoutMs: number;
  /** Called for every delivery once it is durable. One that is not news was known before. */
  readonly onStored?: (delivery: StoredDelivery) => void;
};

export type StoredDelivery = {
  readonly isNews: boolean;
  /** Its client id stood for another message. */
  readonly isReused: boolean;
  readonly unreadable: Unreadable | undefined;
  readonly bytes: number;
};

const unreadableText: Readonly<Record<Unreadable, string>> = {
  not_opened: "a sealed message could not be opened",
  relabelled: "the broker says other things about a message than its box does, or that it is for another member",
};

/** How long a delivery waits that the disk refused, and an ack that the broker did not take. */
const retryMs = 5_000;
/** Deliveries held for a retry. The broker still has what is dropped here, and sends it again after the next hello. */
const heldMax = 1_000;

export class Receiver {
  readonly #ports: ReceivePorts;
  readonly #failures = createLogLimiter(10, 60_000);
  readonly #open = new Set<Promise<void>>();
  #toAck = new Set<number>();
  #ackScheduled = false;
  #held: HistoryItem[] = [];
  #retryTimer: Timer | undefined;
  #stopped = false;

  constructor(ports: ReceivePorts) {
    this.#ports = ports;
  }

  receive(item: HistoryItem): void {
    if (this.#stopped) return;
    const work = this.#store(item).finally(() => this.#open.delete(work));
    this.#open.add(work);
  }

  /** Takes nothing more in. What is not acked comes again. */
  stop(): void {
    this.#stopped = true;
    this.#retryTimer?.cancel();
  }

  /** Resolves when every message taken in so far is stored or given up, and its ack passed to the link. */
  async settled(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open);
    this.#sendAcks();
  }

  async #store(item: HistoryItem): Promise<void> {
    const { ownPubkey, inbox, sealer, nameOf, clock, log, onStored } = this.#ports;
    const message = readMessage(item, ownPubkey, sealer);
    const senderName = nameOf(message.senderPubkey);
    let inserted: InboxInsert;
    try {
      inserted = await inbox.insert({ ...message, senderName, restored: false }, clock.nowMs());
    } catch (error) {
      this.#hold(item, error);
      return;
    }
    const isNews = inserted !== "known";
    const isReused = inserted === "reused";
    const bytes = message.body.length + message.meta.length;
    onStored?.({ isNews, isReused, unreadable: message.unreadable, bytes });
    if (isReused) {
      const { client_message_id, broker_message_id, history_id } = item;
      const fields = { event: "client_id_reused", client_message_id, broker_message_id, history_id };
      log.warn(fields, "a message came under the client id of another one; both are kept");
    }
    if (isNews && message.unreadable !== undefined) {
      const fields = { event: "unreadable_message", history_id: item.history_id, sender: item.sender_pubkey };
      log.warn({ ...fields, why: message.unreadable }, `${unreadableText[message.unreadable]}; it is kept as it came`);
    }
    this.#ack(item.history_id);
  }

  #hold(item: HistoryItem, error: unknown): void {
    const admission = this.#failures.admit(this.#ports.clock.nowMs());
    if (admission.type === "write") {
      const { leftOut } = admission;
      const fields = { event: "inbox_insert_failed", history_id: item.history_id, err: error, leftOut };
      this.#ports.log.error(fields, "a message could not be stored and is not acked");
    }
    if (this.#held.length < heldMax) this.#held.push(item);
    this.#retryLater();
  }

  #ack(historyId: number): void {
    this.#toAck.add(historyId);
    if (this.#ackScheduled) return;
    this.#ackScheduled = true;
    // Everything that the same commit made durable goes into one frame.
    this.#ports.nextTurn(() => this.#sendAcks());
  }

  #sendAcks(): void {
    this.#ackScheduled = false;
    const historyIds = [...this.#toAck];
    this.#toAck = new Set();
    for (let from = 0; from < historyIds.length; from += limits.acksPerFrame) {
      const chunk = historyIds.slice(from, from + limits.acksPerFrame);
      const { link, requestTimeoutMs } = this.#ports;
      void link.request("ack", { history_ids: chunk }, { timeoutMs: requestTimeoutMs }).then((outcome) => {
        if (outcome.type === "answered" && outcome.status === 200) return;
        // After a lost connection the broker delivers again, and the duplicate is acked.
        if (outcome.type === "connection_lost" || outcome.type === "not_sent") return;
        for (const historyId of chunk) this.#toAck.add(historyId);
        this.#retryLater();
      });
    }
  }

  #retryLater(): void {
    if (this.#stopped || this.#retryTimer !== undefined) return;
    this.#retryTimer = this.#ports.clock.setTimer(retryMs, () => {
      this.#retryTimer = undefined;
      const held = this.#held;
      this.#held = [];
      for (const item of held) this.receive(item);
      this.#sendAcks();
    });
  }
}
