// Members who read history page by page: what they read grows, and once they are past a number nothing that they may
// see appears below it.
import type { Answer } from "../world/daemon.ts";
import type { HistoryLedger } from "./history-ledger.ts";
import { Violation } from "./violation.ts";

type Item = { readonly history_id: number; readonly client_message_id: string };

export class HistoryReader {
  readonly #pubkey: string;
  readonly #seen = new Set<number>();
  after = 0;

  constructor(pubkey: string) {
    this.#pubkey = pubkey;
  }

  note(askedAfter: number, { status, body }: Answer): void {
    if (status !== 200) return;
    let last = askedAfter;
    for (const { history_id } of body.items as readonly Item[]) {
      if (history_id <= last)
        throw new Violation("history_order", `a page after ${askedAfter} goes back to ${history_id}`);
      last = history_id;
      this.#seen.add(history_id);
    }
    const next = typeof body.next_after === "number" ? body.next_after : last;
    this.after = Math.max(this.after, next);
  }

  /** Only where nothing is ever removed. */
  check(ledger: HistoryLedger): void {
    for (const { historyId, sender, recipients } of ledger.all()) {
      if (historyId > this.after || this.#seen.has(historyId)) continue;
      if (sender !== this.#pubkey && !recipients.includes(this.#pubkey)) continue;
      throw new Violation("history_order", `a reader is at ${this.after} and has never seen ${historyId}`);
    }
  }
}
