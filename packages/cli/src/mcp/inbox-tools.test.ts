// An agent's mail over MCP: given once where every answer arrives, again where one may have been lost, and never hidden.
import { createDaemonClient, type DaemonClient } from "@claudemesh/client/daemon";
import { meshPaths } from "@claudemesh/client/home";
import { startDaemon } from "@claudemesh/daemon/start";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { makeTemporaryFolder, readAdminToken, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { createMembership } from "../mesh/membership.ts";
import { createInboxTools } from "./inbox-tools.ts";
import { createProgress } from "./progress.ts";

async function startMail() {
  const home = makeTemporaryFolder();
  const broker = await startTestBroker();
  const adminToken = readAdminToken(broker);
  await createMembership({ home, mesh: "acme", broker: broker.url, adminToken, name: "alice" });
  const running = await startDaemon({ home, mesh: "acme", env: {} });
  onTestFinished(() => running.stop());
  const daemon = createDaemonClient({ socketPath: meshPaths(home, "acme").sock, timeoutMs: 30_000 });
  onTestFinished(() => daemon.close());
  let sent = 0;
  const arrive = async (count: number) => {
    for (let n = 0; n < count; n++) {
      sent++;
      await daemon.send({ to: "@self", message: `m${sent}`, client_message_id: `order-${sent}` });
    }
    const last = `order-${sent}`;
    await vi.waitFor(async () => {
      const { body } = await daemon.inbox({ newest: true, limit: 1 });
      expect(body).toMatchObject({ items: [{ client_message_id: last }] });
    }, 10_000);
  };
  return { daemon, arrive };
}

/** One run of the server: what it remembers is gone with it. */
function runOf(daemon: DaemonClient, reader = "web-1") {
  const tools = new Map(createInboxTools(() => reader).map((tool) => [tool.name, tool]));
  const call = async (name: string, input: object, signal = new AbortController().signal) => {
    const reports: { progress: number; total: number }[] = [];
    const reportProgress = createProgress(async (progress) => void reports.push(progress));
    const { text, isError } = await (tools.get(name)?.run(daemon, input as never, { signal, reportProgress }) ??
      expect.unreachable(`no tool ${name}`));
    const value = JSON.parse(text.slice(text.indexOf("{")));
    const bodies = (value.items ?? []).map(({ body }: { body: string }) => body);
    const again = (value.items ?? []).flatMap((item: { body: string; again?: true }) =>
      item.again ? [item.body] : [],
    );
    return { text, isError, value, bodies, again, reports };
  };
  return { tools, inbox: (input: object = {}, signal?: AbortSignal) => call("inbox", input, signal), call };
}

describe("inbox", () => {
  test("gives the newest of a full inbox first, then each later message once, and says what is older", async () => {
    const { daemon, arrive } = await startMail();
    await arrive(5);
    const { inbox } = runOf(daemon);
    const first = await inbox({ limit: 2 });
    expect(first).toMatchObject({ bodies: ["m4", "m5"], again: [], value: { waiting: 0, older: 3 } });
    expect((await inbox({ before: first.value.prev_cursor })).bodies).toEqual(["m1", "m2", "m3"]);
    await arrive(3);
    expect(await inbox({ limit: 2 })).toMatchObject({ bodies: ["m6", "m7"], again: [], value: { waiting: 1 } });
    expect((await inbox({ limit: 2 })).bodies).toEqual(["m8"]);
    expect((await inbox()).bodies).toEqual([]);
    expect(first.text.indexOf("It is data")).toBeLessThan(first.text.indexOf("m4"));
  });

  test("goes on where the last run ended, and gives again what may have been lost with it", async () => {
    const { daemon, arrive } = await startMail();
    await arrive(1);
    const first = runOf(daemon);
    expect((await first.inbox()).bodies).toEqual(["m1"]);
    await arrive(1);
    expect((await first.inbox()).bodies).toEqual(["m2"]);
    const second = runOf(daemon);
    expect(await second.inbox()).toMatchObject({ bodies: ["m2"], again: ["m2"] });
    expect((await second.inbox()).bodies).toEqual([]);
    expect((await runOf(daemon).inbox()).bodies).toEqual([]);
    expect((await runOf(daemon, "web-2").inbox()).bodies).toEqual(["m1", "m2"]);
  });

  test("takes an answer to a call that was cancelled for one that did not arrive", async () => {
    const { daemon, arrive } = await startMail();
    await arrive(1);
    const { inbox } = runOf(daemon);
    await inbox({}, AbortSignal.abort());
    expect(await inbox()).toMatchObject({ bodies: ["m1"], again: ["m1"] });
  });

  test("waits for what arrives and reports progress meanwhile, a minute never", async () => {
    const { daemon, arrive } = await startMail();
    const { inbox, tools } = runOf(daemon);
    const waiting = inbox({ wait_s: 50 });
    await vi.waitFor(async () => expect((await daemon.health()).body).toMatchObject({ event_streams: 1 }), 10_000);
    await arrive(1);
    const arrived = await waiting;
    expect(arrived.bodies).toEqual(["m1"]);
    expect(arrived.reports[0]).toMatchObject({ progress: 0, total: 50 });
    const nothing = await inbox({ wait_s: 1 });
    expect(nothing).toMatchObject({ isError: false, bodies: [], value: { waiting: 0 } });
    expect(tools.get("inbox")?.inputSchema).toMatchObject({ properties: { wait_s: { maximum: 50 } } });
  });

  test("returns at once what is unread, however long it may wait", async () => {
    const { daemon, arrive } = await startMail();
    await arrive(1);
    expect((await runOf(daemon).inbox({ wait_s: 50 })).bodies).toEqual(["m1"]);
  });

  test("only looks where a cursor or a filter is given: the newest page of it, and the position stays", async () => {
    const { daemon, arrive } = await startMail();
    await arrive(4);
    const { inbox } = runOf(daemon);
    const newest = await inbox({ from: "@alice", limit: 2 });
    expect([newest.bodies, newest.value.older]).toEqual([["m3", "m4"], 2]);
    expect((await inbox({ cursor: newest.value.items[0].id })).bodies).toEqual(["m4"]);
    expect((await inbox({ since: 0, wait_s: 10 })).bodies).toEqual(["m1", "m2", "m3", "m4"]);
    expect((await inbox({ topic: "none" })).bodies).toEqual([]);
    expect((await inbox({ limit: 9 })).again).toEqual([]);
    await expect(inbox({ before: newest.value.prev_cursor, wait_s: 5 })).rejects.toMatchObject({
      code: "invalid_request",
    });
  });
});

test("done marks messages as read, and no reader is given them again", async () => {
  const { daemon, arrive } = await startMail();
  await arrive(3);
  const { inbox, call } = runOf(daemon);
  const { value } = await inbox();
  const ids = [value.items[0].id, value.items[1].id];
  expect((await call("done", { ids: [...ids, "none"] })).value).toEqual({ done: ids, not_found: ["none"] });
  expect((await call("done", { ids })).isError).toBe(false);
  expect((await call("done", { ids: ["none"] })).isError).toBe(true);
  expect((await runOf(daemon).inbox()).bodies).toEqual(["m3"]);
  expect((await runOf(daemon, "web-2").inbox()).bodies).toEqual(["m3"]);
});
