import { fateOf } from "@claudemesh/protocol/messages/fate";
import { describe, expect, it } from "vitest";
import type { OutboxRecord } from "../core/outbox-row.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { ScriptedLink, settle } from "../testing/scripted-link.ts";
import { startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";
import { newRow, openTestStores, recordingLog } from "../testing/test-stores.ts";
import { Expiry } from "./expire.ts";
import { loadNegotiatedLimits } from "./negotiated-limits.ts";

const hourMs = 3_600_000;
const brokerId = "01890000-0000-7000-8000-00000000000b";
const dedupe = { mode: "retention_scoped", dedupe_retention_days: 7 } as const;

/** A broker that remembers for 7 days: rows are tried for 144 hours. */
async function setUp() {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  const link = new ScriptedLink();
  const log = recordingLog();
  const loaded = loadNegotiatedLimits(stores.negotiated, undefined);
  if (!loaded.ok) throw new Error("no override is given");
  const { limits } = loaded;
  await limits.adopt({ dedupe, inlineBytes: 65_536, connectionPolicy: "prefer_newest" });
  const expiry = new Expiry({ outbox: stores.outbox, link, clock, log, limits, requestTimeoutMs: 1_000 });
  const insert = async (ageHours: number, columns: Record<string, string | number> = {}) => {
    const row = newRow(stores, clock, { enqueuedAt: clock.nowMs() - ageHours * hourMs });
    await stores.outbox.insert(row, "pending");
    for (const [column, value] of Object.entries(columns)) {
      stores.outboxDb.sql(`UPDATE outbox SET ${column} = ? WHERE id = ?`).run(value, row.id);
    }
    return row;
  };
  const rowOf = (id: string) => stores.outbox.inspect(id)?.row as OutboxRecord;
  const fate = (id: string) => fateOf({ ...rowOf(id), fenced: rowOf(id).fenced === 1 });
  return { clock, stores, link, log, expiry, insert, rowOf, fate };
}

const unknown = { attempts: 2, unanswered: 1 };
const refused = { attempts: 2, unanswered: 0 };

describe("a row past its age", () => {
  it("that was never sent, or always refused, is dead as expired, without asking the broker", async () => {
    const { expiry, insert, rowOf, fate, link } = await setUp();
    link.goOnline();
    const unsent = await insert(144);
    const alwaysRefused = await insert(150, refused);
    const young = await insert(143);
    await expiry.sweep();
    expect(rowOf(unsent.id)).toMatchObject({ status: "dead", last_error: expect.stringMatching(/^expired: /) });
    expect(fate(unsent.id)).toBe("unsent");
    expect(rowOf(alwaysRefused.id).status).toBe("dead");
    expect(fate(alwaysRefused.id)).toBe("refused");
    expect(rowOf(young.id).status).toBe("pending");
    expect(link.requests).toEqual([]);
  });

  it("whose fate is unknown is fenced first, by its wire fingerprint", async () => {
    const { expiry, insert, rowOf, link } = await setUp();
    link.goOnline();
    const row = await insert(145, unknown);
    const swept = expiry.sweep();
    const request = await link.requested("fence");
    expect(rowOf(row.id).status).toBe("pending");
    expect(request.input).toEqual({ client_message_id: row.clientMessageId, fingerprint: "02".repeat(32) });
    request.answer(200, { fate: "fenced" });
    await swept;
    expect(rowOf(row.id)).toMatchObject({ status: "dead", fenced: 1, last_error: expect.stringMatching(/^expired: /) });
  });

  it("that the broker has committed is done", async () => {
    const { expiry, insert, rowOf, link } = await setUp();
    link.goOnline();
    const row = await insert(145, unknown);
    const body = { fate: "committed", broker_message_id: brokerId, history_id: 9 };
    link.automatic.set("fence", () => ({ type: "answered", status: 200, body }));
    await expiry.sweep();
    expect(rowOf(row.id)).toMatchObject({ status: "done", broker_message_id: brokerId, history_id: 9 });
  });

  it("whose id stands for something else at the broker is dead, and certainly never committed", async () => {
    const { expiry, insert, rowOf, fate, link } = await setUp();
    link.goOnline();
    const row = await insert(145, unknown);
    link.automatic.set("fence", () => ({ type: "answered", status: 200, body: { fate: "taken" } }));
    await expiry.sweep();
    expect(rowOf(row.id)).toMatchObject({ status: "dead", last_error: expect.stringMatching(/^taken: /) });
    expect(fate(row.id)).toBe("refused");
  });

  it.each([
    ["the broker is away", undefined],
    ["the broker does not answer", { type: "timed_out" }],
    ["the broker is in trouble", { type: "answered", status: 503, body: {} }],
    ["the answer makes no sense", { type: "answered", status: 200, body: { fate: "maybe" } }],
  ] as const)("is dead with its fate unknown where %s", async (_, outcome) => {
    const { expiry, insert, rowOf, fate, link } = await setUp();
    if (outcome !== undefined) {
      link.goOnline();
      link.automatic.set("fence", () => outcome);
    }
    const row = await insert(145, unknown);
    await expiry.sweep();
    expect(rowOf(row.id)).toMatchObject({ status: "dead", fenced: 0 });
    expect(fate(row.id)).toBe("unknown");
  });

  it("that is out just now is left to its try, and ends with the next sweep", async () => {
    const { expiry, insert, rowOf, stores, clock } = await setUp();
    const row = await insert(145, { status: "inflight" });
    await expiry.sweep();
    expect(rowOf(row.id).status).toBe("inflight");
    await stores.outbox.endTry(
      row.id,
      0,
      { next: "pending", unanswered: 0, nextAttemptAt: clock.nowMs(), lastError: "x" },
      clock.nowMs(),
    );
    await expiry.sweep();
    expect(rowOf(row.id).status).toBe("dead");
  });

  it("comes in any number", async () => {
    const { expiry, insert, stores, log } = await setUp();
    for (let index = 0; index < 150; index++) await insert(145, index % 2 === 0 ? unknown : refused);
    await expiry.sweep();
    expect(stores.outbox.counts()).toEqual({ pending: 0, inflight: 0, dead: 150, dismissed: 0 });
    expect(log.lines).toMatchObject([{ event: "rows_expired", rows: 150 }]);
  });
});

describe("a row that was made before a long sleep and stored after it", () => {
  const longMs = 1_000 * 24 * hourMs;
  const send = { to: "#general", message: "hello", client_message_id: "order-1" };

  it.each([
    ["a send", (daemon: TestDaemon) => daemon.send({ ...send, client_message_id: "late" })],
    [
      "a requeue",
      (daemon: TestDaemon) =>
        daemon.call("POST", "/v1/outbox/requeue", { json: { id: "order-1", new_client_id: "late" } }),
    ],
  ])("is ended where %s made it: it is neither tried nor left pending", async (_, make) => {
    const clock = new ManualClock();
    const daemon = await startTestDaemon({ clock });
    await daemon.send(send);
    daemon.outboxDb().sql("UPDATE outbox SET status = 'dead'").run();
    // Old rows are looked for, and there are none. What is made now bears an earlier time, as if the host had slept
    // between reading its clock and storing the row.
    daemon.link.goOnline();
    await settle();
    daemon.link.goOffline();
    clock.advance(-longMs);
    expect((await make(daemon)).status).toBeLessThan(300);
    clock.advance(longMs);
    daemon.link.goOnline();
    await settle();
    expect((await daemon.call("GET", "/v1/outbox/late")).body.row.status).toBe("dead");
    expect(daemon.link.ofKind("send")).toEqual([]);
  });
});

describe("a dead row of unknown fate", () => {
  const dead = { status: "dead", ...unknown };

  it("is fenced after the next hello", async () => {
    const { expiry, insert, fate, rowOf, link } = await setUp();
    const row = await insert(145, unknown);
    await expiry.sweep();
    expect(fate(row.id)).toBe("unknown");
    link.automatic.set("fence", () => ({ type: "answered", status: 200, body: { fate: "fenced" } }));
    link.goOnline();
    await expiry.settleUnknownFates();
    expect(rowOf(row.id)).toMatchObject({ status: "dead", fenced: 1 });
    expect(fate(row.id)).toBe("refused");
    link.requests.length = 0;
    await expiry.settleUnknownFates();
    expect(link.requests).toEqual([]);
  });

  it("becomes done when the broker had it all along", async () => {
    const { expiry, insert, rowOf, link } = await setUp();
    const row = await insert(1, dead);
    const body = { fate: "committed", broker_message_id: brokerId, history_id: 9 };
    link.automatic.set("fence", () => ({ type: "answered", status: 200, body }));
    link.goOnline();
    await expiry.settleUnknownFates();
    expect(rowOf(row.id)).toMatchObject({ status: "done", history_id: 9, last_error: null });
  });

  it("stays unknown where the broker may have forgotten what it accepted", async () => {
    const { expiry, insert, fate, link } = await setUp();
    const row = await insert(7 * 24, dead);
    link.automatic.set("fence", () => ({ type: "answered", status: 200, body: { fate: "fenced" } }));
    link.goOnline();
    await expiry.settleUnknownFates();
    expect(fate(row.id)).toBe("unknown");
    expect(link.requests).toEqual([]);
  });

  it("that expires beyond the broker's memory stays unknown although the broker calls it fenced", async () => {
    const { expiry, insert, fate, rowOf, link } = await setUp();
    link.goOnline();
    link.automatic.set("fence", () => ({ type: "answered", status: 200, body: { fate: "fenced" } }));
    const row = await insert(7 * 24, unknown);
    await expiry.sweep();
    expect(rowOf(row.id).status).toBe("dead");
    expect(fate(row.id)).toBe("unknown");
  });

  it("is asked about once, however many callers want it", async () => {
    const { expiry, insert, link } = await setUp();
    await insert(1, dead);
    link.goOnline();
    const both = Promise.all([expiry.settleUnknownFates(), expiry.settleUnknownFates()]);
    (await link.requested("fence")).answer(200, { fate: "fenced" });
    await both;
    await settle();
    expect(link.ofKind("fence")).toHaveLength(1);
  });
});
