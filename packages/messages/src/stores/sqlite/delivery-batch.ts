// The deliveries of accepts that follow each other in one transaction. Messages that stand side by side in history and
// have the same recipients get their rows by one statement per recipient, from the history that was written just before.
// Why: docs/tuning-log.md#neighbours-share-their-deliveries.
import type { Sqlite } from "@claudemesh/storage/sqlite";

export class DeliveryBatch {
  readonly #tx: Sqlite;
  readonly #meshId: string;
  #recipients: readonly string[] = [];
  #firstMessageId = "";
  /** Of the messages whose rows are not written yet, both ends included. */
  #first = 1;
  #last = 0;

  constructor(tx: Sqlite, meshId: string) {
    this.#tx = tx;
    this.#meshId = meshId;
  }

  /** The message's history row is written already. */
  add(historyId: number, brokerMessageId: string, recipients: readonly string[]): void {
    if (historyId === this.#last + 1 && areSame(recipients, this.#recipients)) {
      this.#last = historyId;
      return;
    }
    this.finish();
    this.#recipients = recipients;
    this.#firstMessageId = brokerMessageId;
    this.#first = historyId;
    this.#last = historyId;
  }

  /** Writes what is left. Belongs into the same transaction, behind the last accept. */
  finish(): void {
    if (this.#first === this.#last) this.#writeOne();
    else if (this.#first < this.#last) this.#writeSeveral();
    this.#first = this.#last + 1;
  }

  #writeOne(): void {
    const insert = this.#tx.sql(
      "INSERT INTO delivery_queue (mesh_id, history_id, recipient_pubkey, broker_message_id) VALUES (?, ?, ?, ?)",
    );
    for (const recipient of this.#recipients) insert.write(this.#meshId, this.#first, recipient, this.#firstMessageId);
  }

  // A failure rolls the whole transaction back, so that what SQLite would keep to undo this statement alone is not needed:
  // a journal that goes to a file of its own as soon as a batch is larger than a few pages. FAIL tells it so.
  #writeSeveral(): void {
    const insert = this.#tx.sql(
      `INSERT OR FAIL INTO delivery_queue (mesh_id, history_id, recipient_pubkey, broker_message_id)
       SELECT mesh_id, history_id, ?, broker_message_id FROM message_history
       WHERE mesh_id = ? AND history_id BETWEEN ? AND ?`,
    );
    for (const recipient of this.#recipients) insert.write(recipient, this.#meshId, this.#first, this.#last);
  }
}

/** A topic's recipients are the same list; each direct message brings a list of one. */
function areSame(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === 1 && b.length === 1 && a[0] === b[0]);
}
