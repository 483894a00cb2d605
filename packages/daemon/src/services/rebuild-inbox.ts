// Bringing a lost inbox back from the broker's history, page by page. How far it came is kept in the new inbox, so that
// a restart goes on from there. Rows restored this way fire nothing: they were news once.
import { historyPageItems, readHistoryPage } from "../core/history-page.ts";
import { isRecipient, type OpenSealed, readMessage } from "../core/inbox-message.ts";
import type { BrokerLink, Clock, InboxInsert, InboxStore, Log } from "../ports.ts";

export type RebuildPorts = {
  readonly ownPubkey: string;
  readonly inbox: Pick<InboxStore, "insert" | "rebuildAfter" | "setRebuildAfter">;
  readonly link: Pick<BrokerLink, "request">;
  readonly sealer: OpenSealed;
  readonly nameOf: (pubkey: string) => string | undefined;
  readonly inlineBytes: () => number;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Log;
  readonly requestTimeoutMs: number;
};

export class InboxRebuild {
  readonly #ports: RebuildPorts;
  #running = false;
  #halvings = 0;

  constructor(ports: RebuildPorts) {
    this.#ports = ports;
  }

  /** Goes on until the end of history; false: it came to a stop and wants to be called again after the next hello. */
  async run(): Promise<boolean> {
    const { inbox, log } = this.#ports;
    if (this.#running) return true;
    this.#running = true;
    try {
      let restored = 0;
      for (let after = inbox.rebuildAfter(); after !== undefined; after = inbox.rebuildAfter()) {
        const page = await this.#restorePage(after);
        if (page === undefined) return false;
        restored += page.restored;
        if (page.nextAfter === undefined) {
          log.info({ event: "inbox_rebuilt", rows: restored }, "the inbox is rebuilt from the broker's history");
        }
        await inbox.setRebuildAfter(page.nextAfter);
      }
      return true;
    } finally {
      this.#running = false;
    }
  }

  async #restorePage(
    after: number,
  ): Promise<{ readonly restored: number; readonly nextAfter: number | undefined } | undefined> {
    const { link, requestTimeoutMs, ownPubkey, inlineBytes, log } = this.#ports;
    const input = { after, limit: historyPageItems(inlineBytes(), this.#halvings) };
    const outcome = await link.request("history", input, { timeoutMs: requestTimeoutMs });
    const page = outcome.type === "answered" && outcome.status === 200 ? readHistoryPage(outcome.body) : undefined;
    if (page === undefined || (page.nextAfter !== undefined && page.nextAfter <= after)) {
      // The page may have been larger than a frame may be: ask for less next time.
      this.#halvings++;
      log.warn({ event: "inbox_rebuild_paused", after }, "a page of history did not come");
      return undefined;
    }
    if (page.notUnderstood > 0) {
      log.warn({ event: "history_not_understood", items: page.notUnderstood }, "items of history were passed over");
    }
    const mine = page.items.filter((item) => isRecipient(item, ownPubkey));
    const inserted = await Promise.all(mine.map((item) => this.#restore(item)));
    return { restored: inserted.filter((each) => each !== "known").length, nextAfter: page.nextAfter };
  }

  #restore(item: Parameters<typeof readMessage>[0]): Promise<InboxInsert> {
    const { ownPubkey, inbox, sealer, nameOf, clock } = this.#ports;
    const message = readMessage(item, ownPubkey, sealer);
    return inbox.insert({ ...message, senderName: nameOf(message.senderPubkey), restored: true }, clock.nowMs());
  }
}
