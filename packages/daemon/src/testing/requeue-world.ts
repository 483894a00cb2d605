// Everything around a requeue but the network: real stores, the real drain, a clock that stands still, and a broker that
// the test plays.

import { nodeSha256 } from "@claudemesh/client/internal/node-sha256";
import { generateMemberKeys } from "@claudemesh/client/keys";
import { loadSealer } from "@claudemesh/client/seal";
import type { DedupeParameters } from "@claudemesh/protocol/features";
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import { type Fate, fateOf } from "@claudemesh/protocol/messages/fate";
import type { RequeueRequest } from "@claudemesh/protocol/messages/requeue-request";
import { readSendContent, type SendRequest } from "@claudemesh/protocol/messages/send-request";
import type { OutboxRecord } from "../core/outbox-row.ts";
import { Drain } from "../services/drain.ts";
import { type ComposePorts, composeRow } from "../services/enqueue-send.ts";
import { loadNegotiatedLimits } from "../services/negotiated-limits.ts";
import { type RequeuePorts, requeueRow } from "../services/requeue.ts";
import { ManualClock } from "./manual-clock.ts";
import { ScriptedLink } from "./scripted-link.ts";
import { noFailpoints, openTestStores, recordingLog } from "./test-stores.ts";

export const requestTimeoutMs = 10_000;
const backoff = { minMs: 500, maxMs: 60_000 };
const yearMs = 365 * 86_400_000;

/** A broker that remembers for 7 days: its word about a row is worth something for 144 hours. */
const week: DedupeParameters = { mode: "retention_scoped", dedupe_retention_days: 7 };

export type RequeueWorld = Awaited<ReturnType<typeof openRequeueWorld>>;

export async function openRequeueWorld(given: { dedupe?: DedupeParameters; inlineBytes?: number } = {}) {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  const link = new ScriptedLink();
  const log = recordingLog();
  const keys = generateMemberKeys();
  const sealer = await loadSealer(keys);
  const loaded = loadNegotiatedLimits(stores.negotiated, undefined);
  if (!loaded.ok) throw new Error("no override is given");
  const { limits } = loaded;
  const inlineBytes = given.inlineBytes ?? 65_536;
  await limits.adopt({ dedupe: given.dedupe ?? week, inlineBytes, connectionPolicy: "prefer_newest" });
  const drainPorts = { outbox: stores.outbox, link, clock, random: () => 0, log, failpoints: noFailpoints };
  const drain = new Drain(
    { ...drainPorts, expiredAtOrBefore: (nowMs) => nowMs - yearMs },
    { backoff, requestTimeoutMs },
  );
  const { nextOutboxId } = stores;
  const compose: ComposePorts = {
    sealer,
    sha256: nodeSha256,
    nowMs: clock.nowMs,
    nextOutboxId,
    inlineBytes: limits.inlineBytes,
  };
  let minted = 0;
  const ports: RequeuePorts = {
    requeues: stores.requeues,
    outbox: stores.outbox,
    link,
    limits,
    gauge: { admit: () => undefined, makeRoom: async () => false },
    compose,
    sealer,
    nextClientMessageId: () => `fresh-${++minted}`,
    clock,
    log,
    requestTimeoutMs,
    admitSuccessor: async () => undefined,
    onDue: () => drain.wake(),
  };
  const inspect = (id: string) => {
    const found = stores.outbox.inspect(id);
    if (found === undefined) throw new Error(`there is no row ${id}`);
    return found;
  };
  return {
    clock,
    stores,
    link,
    log,
    drain,
    sealer,
    keys,
    ports,
    requeue: (request: RequeueRequest, other: Partial<RequeuePorts> = {}) =>
      requeueRow({ ...ports, ...other }, request),
    inspect,
    rowOf: (id: string): OutboxRecord => inspect(id).row,
    fate: (id: string): Fate => fateOf({ ...inspect(id).row, fenced: inspect(id).row.fenced === 1 }),
    payloadOf: (id: string) => stores.requeues.content(inspect(id).row.id)?.body,
    /** Turns every done row into a tombstone. */
    prune: () => stores.outbox.prune(clock.nowMs() + yearMs, clock.nowMs(), 1_000),
    rows: () => stores.outbox.list(undefined, { after: undefined, limit: 1_000 }).items,
    /** A row as a send makes it, then with whatever columns the test wants it to have. */
    insert: async (
      clientMessageId: string,
      columns: Readonly<Record<string, string | number>> = {},
      send: Omit<SendRequest, "to"> & { readonly destination?: Destination } = { message: "hello" },
    ): Promise<string> => {
      const { destination = { kind: "topic", ref: "general" }, ...request } = send;
      const to = destination.kind === "dm" ? `dm:${destination.ref}` : `#${destination.ref}`;
      const row = composeRow(compose, { clientMessageId, to, content: readSendContent(request) }, destination);
      await stores.outbox.insert(row, "pending");
      for (const [column, value] of Object.entries(columns)) {
        stores.outboxDb.sql(`UPDATE outbox SET ${column} = ? WHERE id = ?`).run(value, row.id);
      }
      return row.id;
    },
  };
}
