// Requeue, prune and «where is my message?» as an operator meets them: real broker and daemons, the command line, and
// its exit codes. What a row looks like after a mishap is written into a stopped daemon's outbox. One small mesh serves
// all of them, each with messages of its own.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countUnsettled, expectBrokerConsistent } from "./support/oracle.ts";
import { runCli, runJson } from "./support/process.ts";
import { type Peer, until, untilOnline, World } from "./support/world.ts";

type Facts = {
  readonly state: string;
  readonly fate: string;
  readonly broker: string;
  readonly stages: readonly { readonly stage: string; readonly recipient_name?: string }[];
  readonly chain: readonly { readonly client_message_id: string; readonly accept_duplicate: boolean }[];
};
type Requeued = { readonly new: { readonly outbox_id: string; readonly client_message_id: string } };

const world = new World();
let alice: Peer;
let bob: Peer;

beforeAll(async () => {
  [alice, bob] = await world.startWithPair();
  await Promise.all([alice.start(), bob.start()]);
});
afterAll(() => world.end());

const at = () => ({ home: alice.home });
const requeue = (...args: string[]) => runCli(["daemon", "outbox", "requeue", ...args, "--json"], at());
const bodyOf = (result: { stdout: string }) => JSON.parse(result.stdout.trimEnd().split("\n").at(-1) ?? "");
const factsOf = (id: string) => runJson<Facts>(["status", id], at());
const statusOf = async (id: string) => (await alice.outbox()).find((row) => row.client_message_id === id)?.status;
const isSettled = (id: string, status: string) =>
  until(`${id} is ${status}`, async () => (await statusOf(id)) === status || undefined);

/** As if a try had gone unanswered just before the daemon was stopped; the next one is not due yet. */
async function makeFateUnknown(...ids: readonly string[]): Promise<void> {
  await alice.kill("SIGTERM");
  const db = openSqlite({ path: join(alice.folder, "outbox.db"), mustExist: true });
  const unanswered = `status = 'pending', attempts = 1, unanswered = 1, next_attempt_at = ?, delivered_at = NULL,
    broker_message_id = NULL, history_id = NULL`;
  for (const id of ids) {
    db.sql(`UPDATE outbox SET ${unanswered} WHERE client_message_id = ?`).run(Date.now() + 50_000, id);
  }
  db.close();
  await alice.start();
}

const storedAtBroker = async () => {
  await until("every delivery is settled", () => countUnsettled(world) === 0 || undefined);
  return expectBrokerConsistent(world).stored;
};

describe("claudemesh daemon outbox requeue", () => {
  test("brings a refused message home under a new id, and answers a retry with the successor and exit code 4", async () => {
    // With the broker there, a send to a missing topic would be refused and leave no row.
    await world.whileBrokerIsAway(() => runJson(["send", "#news", "hello", "--id", "news-1"], at()));
    await isSettled("news-1", "dead");
    expect(await factsOf("news-1")).toMatchObject({ state: "dead", fate: "refused" });
    await runJson(["topic", "create", "news"], at());
    const patch = join(world.folder, "patch.json");
    writeFileSync(patch, JSON.stringify({ message: "hello again" }));
    const args = ["--id", "news-1", "--new-client-id", "news-2", "--patch-payload", patch];
    const first = await requeue(...args);
    expect([first.code, bodyOf(first)]).toMatchObject([0, { new: { client_message_id: "news-2" } }]);
    await isSettled("news-2", "done");
    const retry = await requeue(...args);
    expect([retry.code, bodyOf(retry)]).toMatchObject([
      4,
      { error: "not_requeueable", successor: { client_message_id: "news-2" } },
    ]);
    expect(retry.stderr).toContain("claudemesh status news-2");
    const { state, chain } = await factsOf("news-1");
    expect([state, chain.map((link) => link.client_message_id)]).toEqual(["aborted", ["news-1", "news-2"]]);
  });

  test("asks for the operator's word while the broker is away, and fences what it can when it is back", async () => {
    const before = await storedAtBroker();
    await world.broker.kill();
    await runJson(["send", "@bob", "hello", "--id", "away-1"], at());
    await runJson(["send", "@bob", "hello", "--id", "away-2"], at());
    await makeFateUnknown("away-1", "away-2");
    const refused = await requeue("away-1");
    expect([refused.code, bodyOf(refused)]).toMatchObject([
      4,
      { error: "fate_unknown", reason: "broker_not_reachable" },
    ]);
    expect(refused.stderr).toContain("--accept-duplicate");
    expect((await requeue("away-1", "--accept-duplicate", "--new-client-id", "away-1-again")).code).toBe(0);
    const { chain } = await factsOf("away-1");
    expect(chain.map((link) => link.accept_duplicate)).toEqual([true, true]);

    await world.startBroker();
    await untilOnline(alice);
    const result = await requeue("away-2", "--auto");
    expect(result.code, result.stderr).toBe(0);
    const { client_message_id } = (bodyOf(result) as Requeued).new;
    await isSettled(client_message_id, "done");
    await isSettled("away-1-again", "done");
    const arrived = async () => (await bob.inbox()).map((item) => item.client_message_id).toSorted();
    const expected = ["away-1-again", client_message_id].toSorted();
    await until("bob has both", async () => (await arrived()).length >= 2 || undefined);
    expect(await arrived()).toEqual(expected);
    expect((await storedAtBroker()) - before).toBe(2);
  });

  test("finds what was accepted after all: the row is done, nothing is sent twice, exit code 4", async () => {
    await runJson(["send", "@bob", "hello", "--id", "there-1"], at());
    await isSettled("there-1", "done");
    const before = await storedAtBroker();
    await makeFateUnknown("there-1");
    await untilOnline(alice);
    const result = await requeue("there-1", "--accept-duplicate");
    expect([result.code, bodyOf(result)]).toMatchObject([
      4,
      { error: "already_accepted", client_message_id: "there-1" },
    ]);
    expect(await statusOf("there-1")).toBe("done");
    expect(await storedAtBroker()).toBe(before);
  });

  test("has an exit code for every way to ask wrongly", async () => {
    const codes = [];
    for (const args of [
      ["nobody"],
      [],
      ["a", "--id", "b"],
      ["a", "--auto", "--new-client-id", "b"],
      ["nobody", "--patch-payload", "/nowhere/at-all.json"],
    ]) {
      codes.push((await requeue(...args)).code);
    }
    expect(codes).toEqual([5, 2, 2, 2, 1]);
  });
});

describe("claudemesh daemon outbox prune", () => {
  test("makes tombstones that answer as the rows did", async () => {
    await runJson(["send", "@bob", "hello", "--id", "prune-1"], at());
    await isSettled("prune-1", "done");
    const args = ["daemon", "outbox", "prune", "--older-than-days", "0"];
    expect((await runJson<{ tombstones_made: number }>(args, at())).tombstones_made).toBeGreaterThan(0);
    expect(await runJson(args, at())).toEqual({ tombstones_made: 0 });
    expect(await runJson(["send", "@bob", "hello", "--id", "prune-1"], at())).toMatchObject({
      status: "done",
      duplicate: true,
    });
    expect((await factsOf("prune-1")).fate).toBe("committed");
    for (const wrong of [[], ["--older-than-days", "soon"], ["--older-than-days", "-1"]]) {
      expect((await runCli(["daemon", "outbox", "prune", ...wrong], at())).code).toBe(2);
    }
  });
});

describe("claudemesh status", () => {
  test("follows a message from the outbox to the recipient's inbox, and says what it could not ask", async () => {
    await runJson(["send", "@bob", "hello", "--id", "dm-1"], at());
    const facts = await until("bob has it", async () => {
      const facts = await factsOf("dm-1");
      return facts.state === "delivered" ? facts : undefined;
    });
    expect(facts.stages.map(({ stage, recipient_name }) => [stage, recipient_name])).toEqual([
      ["queued", undefined],
      ["stored", undefined],
      ["delivered", "bob"],
    ]);
    const shown = await runCli(["status", "dm-1"], at());
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/^dm-1 {2}delivered\nfrom alice to @bob\n/);
    const item = (await bob.inbox()).find(({ client_message_id }) => client_message_id === "dm-1");
    const brokerId = item?.broker_message_id ?? "";
    await bob.client.call("POST", `/v1/inbox/${item?.id}/read`);
    expect((await runJson<Facts>(["status", brokerId], { home: bob.home })).state).toBe("read");
    await world.broker.kill();
    const away = await until("alice has noticed", async () => {
      const facts = await factsOf(brokerId);
      return facts.broker === "not_reachable" ? facts : undefined;
    });
    expect([away.state, away.fate]).toEqual(["stored", "committed"]);
  });

  test("ends with exit code 5 for an id that is not known", async () => {
    const result = await runCli(["status", "nobody", "--json"], at());
    expect([result.code, bodyOf(result).error]).toEqual([5, "not_found"]);
  });
});
