// What the broker has ever committed, noted from its disk after each commit and before anything else hears of it.
// Retention may remove rows later; the ledger forgets nothing.
import type { Disk } from "../world/disk.ts";
import { Violation } from "./violation.ts";

export type Committed = {
  readonly historyId: number;
  readonly brokerMessageId: string;
  readonly clientMessageId: string;
  readonly sender: string;
  readonly kind: "topic" | "dm" | "queue";
  readonly recipients: readonly string[];
};

type HistoryRow = {
  mesh_id: string;
  history_id: number;
  broker_message_id: string;
  client_message_id: string;
  sender_pubkey: string;
  destination_kind: Committed["kind"];
};

export class HistoryLedger {
  readonly #disk: Disk;
  readonly #byHistoryId = new Map<number, Committed>();
  /** By sender and id: once an id's time at the broker is over, another member may use it. */
  readonly #byId = new Map<string, Committed>();
  #last = 0;
  /** Called with each commit that is noted. */
  onNoted: (committed: Committed) => void = () => undefined;
  readonly #onViolation: (violation: Violation) => void;

  constructor(disk: Disk, onViolation: (violation: Violation) => void) {
    this.#disk = disk;
    this.#onViolation = onViolation;
    disk.onWritten("message_history", "row.history_id", () => this.#noteNew());
  }

  find(sender: string, clientMessageId: string): Committed | undefined {
    return this.#byId.get(`${sender}/${clientMessageId}`);
  }

  at(historyId: number): Committed | undefined {
    return this.#byHistoryId.get(historyId);
  }

  all(): Iterable<Committed> {
    return this.#byHistoryId.values();
  }

  get size(): number {
    return this.#byHistoryId.size;
  }

  /** MSG-6: what is there now was noted when it came, and nothing came below what was there. */
  check(): void {
    const rows = this.#disk.sql<HistoryRow>(`${selectHistory} ORDER BY history_id`).all();
    for (const row of rows) {
      const noted = this.#byHistoryId.get(row.history_id);
      if (noted?.brokerMessageId === row.broker_message_id && noted.clientMessageId === row.client_message_id) continue;
      throw new Violation("history_order", `history ${row.history_id} became another message, or came out of order`);
    }
  }

  #noteNew(): void {
    const rows = this.#disk
      .sql<HistoryRow>(`${selectHistory} WHERE history_id > ? ORDER BY history_id`)
      .all(this.#last);
    for (const row of rows) this.#note(row);
  }

  #note(row: HistoryRow): void {
    const recipients = this.#disk
      .sql<{ recipient_pubkey: string }>(
        "SELECT recipient_pubkey FROM delivery_queue WHERE mesh_id = ? AND history_id = ?",
      )
      .all(row.mesh_id, row.history_id);
    const committed: Committed = {
      historyId: row.history_id,
      brokerMessageId: row.broker_message_id,
      clientMessageId: row.client_message_id,
      sender: row.sender_pubkey,
      kind: row.destination_kind,
      recipients: recipients.map(({ recipient_pubkey }) => recipient_pubkey),
    };
    this.#last = row.history_id;
    const before = this.find(row.sender_pubkey, row.client_message_id);
    if (before !== undefined) {
      const ids = `history ${before.historyId} and ${row.history_id}`;
      this.#onViolation(new Violation("committed_twice", `${row.client_message_id} is ${ids}`));
    }
    this.#byHistoryId.set(row.history_id, committed);
    this.onNoted(committed);
    this.#byId.set(`${row.sender_pubkey}/${row.client_message_id}`, committed);
  }
}

const selectHistory = `SELECT mesh_id, history_id, broker_message_id, client_message_id, sender_pubkey, destination_kind
  FROM message_history`;
