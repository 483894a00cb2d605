// Letting dead rows go: marked once and for good, out of every alarm, and still there for the audit.
import { describe, expect, it } from "vitest";
import { createSqliteAuditReading } from "../stores/sqlite/audit-reading.ts";
import { countUnsettled } from "../stores/sqlite/outbox-reading.ts";
import { openRequeueWorld } from "../testing/requeue-world.ts";
import { recordingLog } from "../testing/test-stores.ts";
import { dismissRow } from "./dismiss.ts";

type Columns = Readonly<Record<string, string | number>>;

async function setUp() {
  const world = await openRequeueWorld();
  const { outbox, dismissals } = world.stores;
  const log = recordingLog();
  const dismiss = (id: string, why = "the topic is gone for good") =>
    dismissRow({ outbox, dismissals, clock: world.clock, log }, { id, why });
  const audit = () => createSqliteAuditReading(world.stores.outboxDb, world.stores.inboxDb).outbox().classes;
  const given = async ({ client_message_id, ...columns }: { client_message_id: string } & Columns) => ({
    id: await world.insert(client_message_id, columns),
  });
  return { ...world, log, dismiss, audit, given };
}

const dead = { status: "dead", attempts: 1, last_error: "destination_not_found: gone" };

describe("a dead row", () => {
  it("is dismissed by either of its ids, with when, by whom and why, and stays dead", async () => {
    const { dismiss, stores, given, clock, log } = await setUp();
    const { id } = await given({ ...dead, client_message_id: "order-1" });
    const mark = { dismissed_at: clock.nowMs(), dismissed_by: "operator", dismissed_why: "the topic is gone for good" };
    const answer = { id, client_message_id: "order-1", status: "dead", ...mark };
    expect(await dismiss("order-1")).toEqual(answer);
    await clock.advance(1_000);
    expect(await dismiss(id, "again, in other words")).toEqual(answer);
    expect(stores.outbox.inspect(id)?.row).toMatchObject({ ...dead, ...mark });
    expect(log.events()).toEqual(["row_dismissed"]);
  });

  it("is out of the counts that alarm, and a class of its own in the audit", async () => {
    const { dismiss, stores, given, audit } = await setUp();
    await given({ ...dead, client_message_id: "a" });
    await given({ ...dead, client_message_id: "b" });
    await given({ ...dead, client_message_id: "c", unanswered: 1 });
    expect(stores.outbox.counts()).toEqual({ pending: 0, inflight: 0, dead: 3, dismissed: 0 });
    await dismiss("a");
    await dismiss("c");
    expect(stores.outbox.counts()).toEqual({ pending: 0, inflight: 0, dead: 1, dismissed: 2 });
    expect(audit()).toMatchObject({ dead_refused: 1, dead_fate_unknown: 0, dead_dismissed: 2 });
    expect(countUnsettled(stores.outboxDb).dead_of_unknown_fate).toBe(0);
  });

  it("goes on as it would have: it may turn out to be stored, and may be requeued", async () => {
    const { dismiss, stores, given, clock } = await setUp();
    const { id } = await given({ ...dead, client_message_id: "a", unanswered: 1 });
    await dismiss("a");
    const acceptance = { brokerMessageId: "b-1", historyId: 7, historyAvailable: true };
    expect(await stores.outbox.commitLate(id, acceptance, clock.nowMs())).toBe(true);
    expect(stores.outbox.inspect(id)?.row.status).toBe("done");
    expect(stores.outbox.counts().dismissed).toBe(0);
  });
});

describe("a row that waits, of a member that was removed from the mesh,", () => {
  it("dies of that and is dismissed at once; what may have arrived is still of unknown fate", async () => {
    const { dismiss, stores, given, clock, audit } = await setUp();
    await given({ status: "pending", client_message_id: "untried" });
    await given({
      status: "pending",
      client_message_id: "tried",
      attempts: 2,
      unanswered: 1,
      last_error: "timed_out: …",
    });
    await stores.membership.save({ at: clock.nowMs() });
    expect(await dismiss("untried")).toMatchObject({ status: "dead", dismissed_why: "the topic is gone for good" });
    await dismiss("tried");
    const rowOf = (id: string) => stores.outbox.inspect(id)?.row;
    const last_error = expect.stringMatching(/^membership_ended: /);
    expect(rowOf("untried")).toMatchObject({ status: "dead", attempts: 0, unanswered: 0, fenced: 0, last_error });
    expect(rowOf("tried")).toMatchObject({ status: "dead", attempts: 2, unanswered: 1, fenced: 0, last_error });
    expect(stores.outbox.counts()).toEqual({ pending: 0, inflight: 0, dead: 0, dismissed: 2 });
    expect(audit()).toMatchObject({ queued: 0, dead_dismissed: 2 });
    expect(countUnsettled(stores.outboxDb)).toEqual({ pending: 0, inflight: 0, dead_of_unknown_fate: 0 });
  });

  it("is left alone while it is inflight, and once the member is one again", async () => {
    const { dismiss, stores, given } = await setUp();
    await given({ status: "inflight", client_message_id: "a" });
    await given({ status: "pending", client_message_id: "b" });
    await stores.membership.save({ at: 1 });
    await expect(dismiss("a")).rejects.toMatchObject({ code: "not_dismissible" });
    await stores.membership.save(undefined);
    await expect(dismiss("b")).rejects.toMatchObject({ code: "not_dismissible" });
    expect(stores.outbox.counts()).toEqual({ pending: 1, inflight: 1, dead: 0, dismissed: 0 });
  });
});

it.each(["pending", "inflight", "done", "aborted"])("a row that is %s is not dismissed", async (status) => {
  const { dismiss, stores, given } = await setUp();
  const { id } = await given({ status, client_message_id: "a" });
  await expect(dismiss("a")).rejects.toMatchObject({ code: "not_dismissible", status: 409, details: { status } });
  expect(stores.outbox.inspect(id)?.row.dismissed_at).toBeNull();
});

it("a row that is not there is not found", async () => {
  const { dismiss } = await setUp();
  await expect(dismiss("missing")).rejects.toMatchObject({ code: "not_found" });
});
