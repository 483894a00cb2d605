// The audit as an operator meets it: it balances after real traffic, and whatever is broken in a stopped process's
// files is named with its layer. One small mesh serves all of it, in this order.
import { join } from "node:path";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countUnsettled } from "./support/oracle.ts";
import { runCli, runJson } from "./support/process.ts";
import { type Peer, until, untilOnline, World } from "./support/world.ts";

type Report = {
  readonly balanced: boolean;
  readonly complete: boolean;
  readonly imbalances: readonly { readonly home: string; readonly layer: string; readonly id: string }[];
  readonly homes: readonly {
    readonly layers: readonly { readonly layer: string; readonly classes: Readonly<Record<string, number>> }[];
  }[];
};

const world = new World();
let alice: Peer;
let bob: Peer;

beforeAll(async () => {
  [alice, bob] = await world.startWithPair();
  await Promise.all([alice.start(), bob.start()]);
});
afterAll(() => world.end());

const at = () => ({ home: alice.home });

async function audit(...args: readonly string[]): Promise<{ code: number; report: Report }> {
  const { code, stdout } = await runCli(["audit", ...args, "--json"], at());
  return { code, report: JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "") as Report };
}

const auditBoth = () => audit("--home", bob.home);
const classesOf = ({ homes }: Report, home: number, layer: string) =>
  homes[home]?.layers.find((each) => each.layer === layer)?.classes;
const named = ({ imbalances }: Report) => imbalances.map(({ home, layer, id }) => [home, layer, id]);

const isSettled = (id: string, status: string) =>
  until(`${id} is ${status}`, async () => {
    const row = (await alice.outbox()).find((each) => each.client_message_id === id);
    return row?.status === status || undefined;
  });

/** Changes exactly one row of a file that no process has open. */
function breakFile(path: string, sql: string, id: string): void {
  const db = openSqlite({ path, mustExist: true });
  const { changes } = db.sql(sql).run(id);
  db.close();
  expect(Number(changes)).toBe(1);
}

async function breakBroker(sql: string, id: string): Promise<void> {
  await world.broker.kill("SIGTERM");
  breakFile(world.storePath, sql, id);
  await world.startBroker();
  await Promise.all([untilOnline(alice), untilOnline(bob)]);
}

describe("claudemesh audit", () => {
  test("balances after traffic with a dead, a requeued and a pruned row, and a queue", async () => {
    await runJson(["send", "@bob", "hello", "--id", "pruned-1"], at());
    await isSettled("pruned-1", "done");
    await runJson(["daemon", "outbox", "prune", "--older-than-days", "0"], at());
    await world.whileBrokerIsAway(async () => {
      await runJson(["send", "#nowhere", "hello", "--id", "dead-1"], at());
      await runJson(["send", "#news", "hello", "--id", "news-1"], at());
    });
    await isSettled("dead-1", "dead");
    await isSettled("news-1", "dead");
    await runJson(["topic", "create", "news"], at());
    await runJson(["topic", "subscribe", "news"], { home: bob.home });
    await runJson(["daemon", "outbox", "requeue", "news-1", "--new-client-id", "news-2"], at());
    await runJson(["queue", "create", "jobs"], at());
    await runJson(["send", "queue:jobs", "work", "--id", "job-1"], at());
    for (const id of ["dm-1", "dm-2", "dm-3"]) await runJson(["send", "@bob", "hello", "--id", id], at());
    await runJson(["send", "@alice", "hello", "--id", "back-1"], { home: bob.home });
    for (const id of ["news-2", "job-1", "dm-1", "dm-2", "dm-3"]) await isSettled(id, "done");
    await until("bob has all", async () => (await bob.inbox()).length === 5 || undefined);
    await until("alice has hers", async () => (await alice.inbox()).length === 1 || undefined);
    await until("every delivery is settled", () => countUnsettled(world) === 0 || undefined);

    const { code, report } = await auditBoth();
    expect(report).toMatchObject({ balanced: true, complete: true, imbalances: [] });
    expect(code).toBe(0);
    expect(classesOf(report, 0, "outbox")).toMatchObject({ stored: 5, dead_refused: 1, aborted: 1, tombstones: 1 });
    expect(classesOf(report, 0, "broker")).toEqual({ committed: 5, tombstones: 1 });
    expect(classesOf(report, 0, "deliveries")).toEqual({ settled: 4, unsettled: 1, expired: 0 });
    expect(classesOf(report, 0, "inbox")).toMatchObject({ settled: 1 });
    expect(classesOf(report, 1, "inbox")).toMatchObject({ settled: 5 });
    const shown = await runCli(["audit"], at());
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/ok +deliveries +5 +4 settled \+ 1 unsettled/);
  });

  test("counts a send past the outbox as a class of its own", async () => {
    await alice.kill("SIGTERM");
    await runJson(["send", "@bob", "hello", "--id", "direct-1"], at());
    await alice.start();
    await untilOnline(alice);
    const { code, report } = await audit();
    expect([code, classesOf(report, 0, "broker")]).toEqual([0, { committed: 5, direct: 1, tombstones: 1 }]);
  });

  test("says that it is not complete while the broker is away, exit code 3", async () => {
    await world.broker.kill("SIGTERM");
    await until("alice has noticed", async () => {
      const { body } = await alice.client.health();
      return (body as { broker: { state: string } }).broker.state !== "online" || undefined;
    });
    const { code, report } = await audit();
    expect([code, report.complete, report.imbalances]).toEqual([3, false, []]);
    const { stdout } = await runCli(["audit"], at());
    // What was not looked at does not count as good.
    expect(stdout).toMatch(/^ok +outbox /m);
    expect(stdout).toMatch(/^\? +broker +- +not looked at$/m);
    expect(classesOf(report, 0, "outbox")).toMatchObject({ stored: 5 });
    await world.startBroker();
    await Promise.all([untilOnline(alice), untilOnline(bob)]);
  });

  test("names a dedupe record, a history row and an inbox row that are gone, each with its layer, exit code 1", async () => {
    await breakBroker("DELETE FROM client_message_dedupe WHERE client_message_id = ?", "dm-1");
    const first = await auditBoth();
    expect([first.code, named(first.report)]).toEqual([1, [[alice.home, "broker", "dm-1"]]]);

    await breakBroker("DELETE FROM message_history WHERE client_message_id = ?", "dm-2");
    const second = await auditBoth();
    expect(second.code).toBe(1);
    expect(named(second.report)).toEqual(["dm-1", "dm-2"].map((id) => [alice.home, "broker", id]));

    await bob.kill("SIGTERM");
    breakFile(join(bob.folder, "inbox.db"), "DELETE FROM inbox WHERE client_message_id = ?", "dm-3");
    await bob.start();
    await untilOnline(bob);
    const third = await auditBoth();
    expect(third.code).toBe(1);
    expect(named(third.report).at(-1)).toEqual([bob.home, "inbox", "dm-3"]);
    expect(third.report.imbalances.length).toBe(3);
    const alone = await runCli(["audit"], { home: bob.home });
    expect(alone.code).toBe(1);
    expect(alone.stdout).toMatch(/^inbox: dm-3: the broker has it as delivered here/m);

    await breakBroker("DELETE FROM delivery_queue WHERE broker_message_id = ?", (await brokerIdOf("back-1")) ?? "");
    const fourth = await auditBoth();
    const ofBack = named(fourth.report).filter(([, , id]) => id === "back-1");
    expect(ofBack).toEqual([
      [alice.home, "inbox", "back-1"],
      [bob.home, "deliveries", "back-1"],
    ]);
  });
});

const brokerIdOf = async (id: string) =>
  (await alice.inbox()).find((item) => item.client_message_id === id)?.broker_message_id;
