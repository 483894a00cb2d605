import { createDaemonClient, type InboxItem, type InboxQuery, type Page } from "@claudemesh/client/daemon";
import { describe, expect, it, onTestFinished } from "vitest";
import { deliver, delivery } from "../testing/deliveries.ts";
import { EventReader } from "../testing/event-reader.ts";
import { startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";

const patiently = { timeoutMs: 20_000 };

async function setUp(options: Parameters<typeof startTestDaemon>[0] = {}) {
  const daemon = await startTestDaemon(options);
  const client = createDaemonClient({ socketPath: daemon.paths.sock, timeoutMs: 10_000 });
  onTestFinished(() => client.close());
  const wait = async (query: InboxQuery, timeoutMs = patiently.timeoutMs) => {
    const { status, body } = await client.waitForInbox(query, { timeoutMs });
    expect(status).toBe(200);
    return body as Page<InboxItem>;
  };
  return { daemon, client, wait };
}

/** Resolves when a caller waits: its stream of events is open. */
async function untilWaiting(daemon: TestDaemon, streams = 1): Promise<void> {
  const open = async () => {
    const { body } = await daemon.call("GET", "/v1/health");
    return body.event_streams as number;
  };
  while ((await open()) < streams);
}

const historyIds = ({ items }: Page<InboxItem>) => items.map(({ history_id }) => history_id);

describe("waiting for the inbox", () => {
  it("ends with what arrives after the call, and the next wait goes on without a gap", async () => {
    const { daemon, wait } = await setUp();
    deliver(daemon.link, delivery(1));
    await (await EventReader.open(daemon, { lastEventId: "0".repeat(26) })).untilCount("message", 1);
    const waiting = wait({});
    await untilWaiting(daemon, 2);
    deliver(daemon.link, delivery(2));
    const first = await waiting;
    expect(historyIds(first)).toEqual([2]);
    expect(first.next_cursor).toBe(first.items[0]?.id);
    deliver(daemon.link, delivery(3));
    expect(historyIds(await wait({ cursor: first.next_cursor ?? "" }))).toEqual([3]);
  });

  it("ends with nothing when the time runs out, and says where the next one goes on", async () => {
    const { daemon, wait } = await setUp();
    const nothing = await wait({}, 200);
    expect(nothing.items).toEqual([]);
    deliver(daemon.link, delivery(1));
    expect(historyIds(await wait({ cursor: nothing.next_cursor ?? "" }))).toEqual([1]);
  });

  it("ends at once with what is there after the time that was given", async () => {
    const { daemon, wait } = await setUp();
    deliver(daemon.link, delivery(1), delivery(2));
    await (await EventReader.open(daemon, { lastEventId: "0".repeat(26) })).untilCount("message", 2);
    expect(historyIds(await wait({ since: 0 }))).toEqual([1, 2]);
    expect(historyIds(await wait({ since: 0, limit: 1 }))).toEqual([1]);
    expect(historyIds(await wait({ since: Date.now() + 60_000 }, 200))).toEqual([]);
  });

  it("is not ended by what the query does not want", async () => {
    const { daemon, wait } = await setUp();
    const waiting = wait({ topic: "builds" });
    await untilWaiting(daemon);
    const builds = { kind: "topic", ref: "builds" } as const;
    deliver(daemon.link, delivery(1), delivery(2), delivery(3, { destination: builds }), delivery(4));
    expect(historyIds(await waiting)).toEqual([3]);
  });

  it("gives a refusal as its answer", async () => {
    const { daemon, client } = await setUp({ overrides: { ipc: { max_streams: 1 } } });
    const nowhere = await client.waitForInbox({ cursor: "x" }, patiently);
    expect(nowhere).toMatchObject({ status: 400, body: { error: "invalid_request", field: "cursor" } });
    await EventReader.open(daemon);
    const full = await client.waitForInbox({}, patiently);
    expect(full).toMatchObject({ status: 429, body: { error: "too_many_streams" } });
  });
});

describe("following the inbox", () => {
  it("gives each message once, over a restart of the daemon, until it is no longer wanted", async () => {
    const { daemon, client } = await setUp();
    const stop = new AbortController();
    const seen: number[] = [];
    const done = (async () => {
      for await (const { history_id } of client.followInbox({}, { signal: stop.signal })) {
        seen.push(history_id);
        if (history_id === 40) stop.abort();
      }
    })();
    await untilWaiting(daemon);
    deliver(daemon.link, ...Array.from({ length: 20 }, (_, index) => delivery(index + 1)));
    while (seen.length < 20) await daemon.call("GET", "/v1/version");
    await daemon.daemon.stop();
    const again = await startTestDaemon({ at: daemon });
    deliver(again.link, ...Array.from({ length: 40 }, (_, index) => delivery(index + 1)));
    await done;
    expect(seen).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
  });
});
