// Everything around a drain: real stores, a clock that stands still, and a broker that the test plays.
import type { ClaimedRow, OutboxRecord } from "../core/outbox-row.ts";
import type { OutboxStore } from "../ports.ts";
import { Drain, type DrainOptions } from "../services/drain.ts";
import { storeSend } from "../services/enqueue-send.ts";
import { ManualClock } from "./manual-clock.ts";
import { ScriptedLink } from "./scripted-link.ts";
import { newRow, noFailpoints, openTestStores, recordingLog } from "./test-stores.ts";

const backoff = { minMs: 500, maxMs: 60_000 };
const yearMs = 365 * 86_400_000;

export async function openDrainWorld(
  options: Partial<DrainOptions> = {},
  outboxWith: (store: OutboxStore) => OutboxStore = (store) => store,
  random = 0,
) {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  const link = new ScriptedLink();
  const log = recordingLog();
  const outbox = outboxWith(stores.outbox);
  const ports = { outbox, link, clock, random: () => random, log, failpoints: noFailpoints };
  const storedAnew: ClaimedRow[] = [];
  const onStoredAnew = (row: ClaimedRow) => storedAnew.push(row);
  const drain = new Drain(
    { ...ports, onStoredAnew, expiredAtOrBefore: (nowMs) => nowMs - yearMs },
    { backoff, requestTimeoutMs: 10_000, ...options },
  );
  const accept = async (given = {}) => {
    const row = newRow(stores, clock, given);
    await stores.outbox.insert(row, "pending");
    drain.wake();
    return row;
  };
  /** As a send comes through the local API: the row is stored as inflight where the drain has room. */
  const send = (given = {}) =>
    storeSend({ outbox, drain, expiry: { stored: () => undefined } }, newRow(stores, clock, given));
  const rowOf = (id: string) => stores.outbox.inspect(id)?.row as OutboxRecord;
  return { clock, stores, link, log, drain, accept, send, rowOf, storedAnew };
}
