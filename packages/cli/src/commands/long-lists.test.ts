// inbox, daemon outbox list and space log show the newest reachable: the last page by default, the way to what is older, and
// all of it on request.
import { DatabaseSync } from "node:sqlite";
import { createDaemonClient } from "@claudemesh/client/daemon";
import { meshPaths } from "@claudemesh/client/home";
import { startDaemon } from "@claudemesh/daemon/start";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { makeTemporaryFolder, readAdminToken, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { createMembership } from "../mesh/membership.ts";
import { buildProgram } from "../program.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";

let home: string;

async function runIn(path: string, ...words: (string | { columns: number })[]) {
  const args = words.filter((word) => typeof word === "string");
  const terminal = words.find((word) => typeof word !== "string");
  const shell = createRecordingShell({ home, ...terminal });
  const program = await buildProgram(shell, (entry) => entry.path === path);
  await program.parseAsync([...path.split(" "), ...args], { from: "user" });
  return { out: shell.printed.join("\n"), err: shell.complaints.join("\n") };
}

const json = async (path: string, ...args: string[]) => JSON.parse((await runIn(path, ...args, "--json")).out);
const bodiesOf = ({ items }: { items: { body: string }[] }) => items.map(({ body }) => body);
const idsOf = ({ items }: { items: { client_message_id: string }[] }) => items.map((row) => row.client_message_id);
const seqsOf = ({ items }: { items: { seq: number }[] }) => items.map(({ seq }) => seq);
const wordsIn = (text: string) => text.match(/\bm\d\b/g) ?? [];

/** Seven messages, of which two are marked as read, and a space with five commits. */
async function startWithThings(): Promise<void> {
  home = makeTemporaryFolder();
  const broker = await startTestBroker();
  const adminToken = readAdminToken(broker);
  await createMembership({ home, mesh: "acme", broker: broker.url, adminToken, name: "alice" });
  const started = await startDaemon({ home, mesh: "acme", env: {} });
  onTestFinished(() => started.stop());
  const daemon = createDaemonClient({ socketPath: meshPaths(home, "acme").sock, timeoutMs: 10_000 });
  onTestFinished(() => daemon.close());
  for (let n = 1; n <= 7; n++) await daemon.send({ to: "@self", message: `m${n}`, client_message_id: `order-${n}` });
  await vi.waitFor(async () => expect((await json("inbox")).items).toHaveLength(7), 10_000);
  for (const id of ["order-2", "order-7"]) await daemon.markRead(id);
}

afterEach(() => {
  process.exitCode = undefined;
});

describe("claudemesh inbox", () => {
  test("does not say that nothing has arrived where nothing matches", async () => {
    await startWithThings();
    expect((await runIn("inbox", "--topic", "news")).out).toContain("Nothing that arrived matches");
    expect((await runIn("inbox", "--from", "stranger")).out).toContain("Nothing that arrived matches");
  });

  test("prints the newest page with the newest at the bottom, and how to see what is older", async () => {
    await startWithThings();
    const { out } = await runIn("inbox", "--limit", "3");
    expect(wordsIn(out)).toEqual(["m5", "m6", "m7"]);
    const [, before = ""] = /\n4 older: --before (\S+), or --all$/.exec(out) ?? [];
    const older = await runIn("inbox", "--limit", "3", "--before", before);
    expect(wordsIn(older.out)).toEqual(["m2", "m3", "m4"]);
    expect(older.out).toMatch(/\n1 older: --before \S+, or --all\nMore: --cursor \S+$/);
    expect((await runIn("inbox")).out).not.toMatch(/older|More/);
  });

  test("names the positions on both sides in its JSON, and --cursor goes forward from there", async () => {
    await startWithThings();
    const newest = await json("inbox", "--limit", "3");
    expect(newest).toMatchObject({ next_cursor: null, older: 4, prev_cursor: newest.items[0].id });
    const before = await json("inbox", "--limit", "3", "--before", newest.prev_cursor);
    expect(bodiesOf(before)).toEqual(["m2", "m3", "m4"]);
    const forward = await json("inbox", "--limit", "2", "--cursor", before.next_cursor);
    expect([bodiesOf(forward), Object.keys(forward)]).toEqual([
      ["m5", "m6"],
      ["items", "next_cursor"],
    ]);
  });

  test("shows only what is not marked as read with --unread, and marks nothing", async () => {
    await startWithThings();
    for (const _time of [1, 2]) {
      expect(bodiesOf(await json("inbox", "--unread", "--limit", "2"))).toEqual(["m5", "m6"]);
    }
    expect(wordsIn((await runIn("inbox", "--unread", "--all")).out)).toEqual(["m1", "m3", "m4", "m5", "m6"]);
  });

  test("prints all of it with --all: one table, or one JSON value per line", async () => {
    await startWithThings();
    const { out } = await runIn("inbox", "--all");
    expect(wordsIn(out)).toEqual(["m1", "m2", "m3", "m4", "m5", "m6", "m7"]);
    expect(out.match(/MESSAGE/g)).toHaveLength(1);
    const lines = (await runIn("inbox", "--all", "--json")).out.split("\n").map((line) => JSON.parse(line));
    expect(bodiesOf({ items: lines })).toEqual(["m1", "m2", "m3", "m4", "m5", "m6", "m7"]);
    const [{ id }] = lines;
    expect(wordsIn((await runIn("inbox", "--all", "--cursor", id)).out)).toHaveLength(6);
  });

  test("says so where nothing is on that side", async () => {
    await startWithThings();
    const { items } = await json("inbox");
    expect((await runIn("inbox", "--before", items[0].id)).out).toBe("There is nothing more on this side.");
    expect((await runIn("inbox", "--unread", "--topic", "none")).out).toContain("Nothing that arrived matches");
  });
});

test("daemon outbox list shows the newest page, the ones before it, and all", async () => {
  await startWithThings();
  const newest = await json("daemon outbox list", "--limit", "2");
  expect([idsOf(newest), newest.older]).toEqual([["order-6", "order-7"], 5]);
  const before = await json("daemon outbox list", "--limit", "2", "--before", newest.prev_cursor);
  expect(idsOf(before)).toEqual(["order-4", "order-5"]);
  expect(idsOf(await json("daemon outbox list", "--cursor", before.next_cursor))).toEqual(["order-6", "order-7"]);
  expect((await runIn("daemon outbox list", "--done", "--limit", "3")).out).toMatch(
    /\n4 older: --before \S+, or --all$/,
  );
  expect((await runIn("daemon outbox list", "--all")).out.match(/order-\d/g)).toHaveLength(7);
  expect((await runIn("daemon outbox list", "--failed")).out).toBe("There are no such rows.");
});

test("daemon outbox list shows ids and errors whole on a terminal of 80 columns", async () => {
  await startWithThings();
  const error = `destination_not_found: ${"there is no such topic, and nothing of this is cut ".repeat(2)}`.trim();
  const long = `order-${"9".repeat(100)}`;
  const db = new DatabaseSync(meshPaths(home, "acme").outboxDb);
  db.prepare(
    "UPDATE outbox SET status = 'dead', last_error = ?, client_message_id = ? WHERE client_message_id = ?",
  ).run(error, "01JD8Z2V9K3M5N7P9Q1R3S5T7V", "order-1");
  db.prepare("UPDATE outbox SET client_message_id = ? WHERE client_message_id = 'order-2'").run(long);
  db.close();
  const { out } = await runIn("daemon outbox list", { columns: 80 });
  const lines = out.split("\n");
  expect(lines[1]).toMatch(/^01JD8Z2V9K3M5N7P9Q1R3S5T7V +dead /);
  expect(lines.slice(2, 5)).toEqual([`  ${error}`, expect.stringMatching(/^order-9{26}… {2}done /), `  ${long}`]);
  expect((await runIn("daemon outbox list")).out.split("\n")[1]).toContain(error);
});

test("space log shows the newest page, the ones before it, and all", async () => {
  await startWithThings();
  await runIn("space create", "plan");
  for (let n = 1; n <= 5; n++) await runIn("space set", "plan", "task:1", JSON.stringify({ n }));
  const newest = await json("space log", "plan", "--limit", "2");
  expect([seqsOf(newest), newest.prevBefore, newest.nextAfter]).toEqual([[4, 5], 4, null]);
  expect(seqsOf(await json("space log", "plan", "--limit", "2", "--before", "4"))).toEqual([2, 3]);
  expect(seqsOf(await json("space log", "plan", "--limit", "2", "--after", "1"))).toEqual([2, 3]);
  expect((await runIn("space log", "plan", "--limit", "2")).out).toMatch(/\n3 older: --before 4, or --all$/);
  expect((await runIn("space log", "plan", "--before", "1")).out).toBe("There is nothing more on this side.");
  const lines = (await runIn("space log", "plan", "--all", "--json")).out.split("\n").map((line) => JSON.parse(line));
  expect(seqsOf({ items: lines })).toEqual([1, 2, 3, 4, 5]);
});

test.each([
  ["inbox", "--before", "01K9ZB4A000000000000000000", "--cursor", "01K9ZB4A000000000000000000"],
  ["inbox", "--before", "01K9ZB4A000000000000000000", "--wait", "30s"],
  ["inbox", "--before", "01K9ZB4A000000000000000000", "--follow"],
  ["inbox", "--before", "yesterday"],
  ["inbox", "--all", "--before", "01K9ZB4A000000000000000000"],
  ["inbox", "--all", "--limit", "5"],
  ["inbox", "--all", "--follow"],
  ["inbox", "--all", "--wait", "30s"],
  ["daemon outbox list", "--all", "--limit", "5"],
  ["daemon outbox list", "--before", "order-1"],
  ["daemon outbox list", "--before", "01K9ZB4A000000000000000000", "--cursor", "01K9ZB4A000000000000000000"],
  ["space log", "plan", "--after", "1", "--before", "3"],
  ["space log", "plan", "--all", "--limit", "5"],
  ["space log", "plan", "--before", "x"],
])("%s %s %s %s %s is wrong usage", async (path, ...args) => {
  await expect(runIn(path, ...args)).rejects.toMatchObject({ code: expect.stringMatching(/^commander\./) });
});
