// What happens to rows when the machine's clock is set: nothing.
import { uptime } from "node:os";
import { performance } from "node:perf_hooks";
import { describe, expect, it } from "vitest";
import { createSystemClock } from "./system-clock.ts";
import { settle } from "./testing/scripted-link.ts";
import { startTestDaemon, type TestDaemon, temporaryHome } from "./testing/test-daemon.ts";

const dayMs = 86_400_000;
const soon = { outbox: { backoff_min_ms: 250, backoff_max_ms: 250 } };

/** The real clocks, except that the test sets the wall clock. */
function jumpingClock() {
  const wall = { aheadMs: 0 };
  const clock = createSystemClock({
    wallMs: () => Date.now() + wall.aheadMs,
    monotonicMs: () => performance.now(),
    uptimeSeconds: () => uptime(),
  });
  return { wall, clock };
}

const rowOf = async (daemon: TestDaemon, id: string) => (await daemon.call("GET", `/v1/outbox/${id}`)).body.row;

describe.each([
  ["back", -1_000 * dayMs],
  ["forward", 1_000 * dayMs],
])("a clock that is set %s by years while the daemon runs", (_, jumpMs) => {
  it("delays no retry", async () => {
    const { wall, clock } = jumpingClock();
    const daemon = await startTestDaemon({ clock, overrides: soon });
    daemon.link.goOnline();
    await daemon.send({ to: "#general", message: "m", client_message_id: "order-1" });
    const first = await daemon.link.requested("send");
    first.end({ type: "timed_out" });
    await settle();
    // The next try is planned now, and its time has not come.
    wall.aheadMs = jumpMs;
    const second = await daemon.link.requested("send");
    expect(second.input).toEqual(first.input);
    second.answer(201, { broker_message_id: "b", history_id: 1, duplicate: false });
    await settle();
    expect(await rowOf(daemon, "order-1")).toMatchObject({ status: "done", attempts: 2 });
  });

  it("ages no row, and the rows that follow carry times that go on from before", async () => {
    const { wall, clock } = jumpingClock();
    const daemon = await startTestDaemon({ clock, overrides: soon });
    await daemon.send({ to: "#general", message: "m", client_message_id: "before" });
    wall.aheadMs = jumpMs;
    await daemon.send({ to: "#general", message: "m", client_message_id: "after" });
    // A hello makes the daemon look for rows that are too old.
    daemon.link.goOnline();
    const sent = [await daemon.link.requested("send"), await daemon.link.requested("send")];
    expect(sent.map(({ input }) => input.client_message_id)).toEqual(["before", "after"]);
    const [before, after] = [await rowOf(daemon, "before"), await rowOf(daemon, "after")];
    expect([before.status, after.status]).toEqual(["inflight", "inflight"]);
    expect(after.enqueued_at).toBeGreaterThanOrEqual(before.enqueued_at);
    expect(after.enqueued_at - before.enqueued_at).toBeLessThan(dayMs);
    expect(after.id > before.id).toBe(true);
  });
});

describe("a clock that is set back between two starts", () => {
  it("delays no retry that was planned by the other clock", async () => {
    const at = temporaryHome();
    const ahead = createSystemClock({
      wallMs: () => Date.now() + 2 * dayMs,
      monotonicMs: () => performance.now(),
      uptimeSeconds: () => uptime(),
    });
    const first = await startTestDaemon({
      at,
      clock: ahead,
      overrides: { outbox: { backoff_min_ms: 60_000, backoff_max_ms: 60_000 } },
    });
    first.link.goOnline();
    await first.send({ to: "#general", message: "m", client_message_id: "order-1" });
    (await first.link.requested("send")).end({ type: "timed_out" });
    await settle();
    expect((await rowOf(first, "order-1")).next_attempt_at).toBeGreaterThan(Date.now() + dayMs);
    await first.daemon.stop();

    const second = await startTestDaemon({ at, overrides: soon });
    second.link.goOnline();
    expect((await second.link.requested("send")).input.client_message_id).toBe("order-1");
  });
});
