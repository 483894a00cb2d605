// `claudemesh send --batch` as a user meets it: many messages from a file or a pipe, one line and one answer each, and the
// same command again whenever something went wrong.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { runCli } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

type Report = {
  readonly accepted: number;
  readonly refused: number;
  readonly unanswered: number;
  readonly not_sent: number;
  readonly results: readonly { readonly line: number; readonly type: string; readonly client_message_id: string }[];
};

const world = new World();
let alice: Peer;
beforeAll(async () => {
  await world.startBroker();
  alice = await world.addPeer("alice");
});
afterEach(() => alice.kill());
afterAll(() => world.end());

const lines = (count: number, name: string) =>
  Array.from({ length: count }, (_, n) => ({
    to: "@self",
    message: `${name} ${n}`,
    client_message_id: `${name}-${n}`,
  }));
const ndjson = (values: readonly object[]) => `${values.map((value) => JSON.stringify(value)).join("\n")}\n`;
const batch = (stdin: string, ...args: string[]) =>
  runCli(["send", "--batch", "-", ...args], { home: alice.home, stdin });
const stored = async (name: string) =>
  (await alice.outbox()).filter(({ client_message_id }) => client_message_id.startsWith(`${name}-`));

describe("a batch", () => {
  test("from a file is sent in its order, with a line for each message, and again it sends nothing twice", async () => {
    await alice.start();
    const path = join(world.folder, "messages.ndjson");
    writeFileSync(path, ndjson(lines(30, "file")));
    const first = await runCli(["send", "--batch", path], { home: alice.home });
    expect(first).toMatchObject({ code: 0, stderr: "" });
    const printed = first.stdout.trimEnd().split("\n");
    expect(printed.slice(0, -1)).toEqual(lines(30, "file").map(({ client_message_id: id }) => `${id}  queued`));
    expect(printed.at(-1)).toBe("30 of 30 messages accepted");
    const again = await runCli(["send", "--batch", path, "--json"], { home: alice.home });
    expect(again.code).toBe(0);
    const report = JSON.parse(again.stdout) as Report;
    expect(report).toMatchObject({ accepted: 30, refused: 0, unanswered: 0, not_sent: 0 });
    expect(report.results[7]).toMatchObject({ line: 8, type: "accepted", body: { duplicate: true } });
    await until("they have arrived", async () => (await alice.inbox()).length >= 30);
    const arrived = (await alice.inbox()).map((item) => item.body);
    expect(arrived).toEqual(lines(30, "file").map(({ message }) => message));
  });

  test("takes ids from --id and the number of the line where a line has none", async () => {
    await alice.start();
    const text =
      '{"to":"@self","message":"a"}\n\n{"to":"@self","message":"b","client_message_id":"own"}\r\n{"to":"@self","message":"c"}';
    const sent = await batch(text, "--id", "nightly-7");
    expect(sent.code).toBe(0);
    expect(sent.stdout).toContain("nightly-7-1  queued\nown  queued\nnightly-7-4  queued\n");
    expect((await batch(text, "--id", "nightly-7")).stdout).toContain("(asked before)");
  });

  test("of which some are refused sends the others, and the worst of them decides the exit code", async () => {
    await alice.start();
    const [first, second, third] = lines(3, "mixed");
    const unknown = { ...second, ttl: 5 };
    const refused = await batch(ndjson([first ?? {}, unknown, third ?? {}]));
    expect(refused.code).toBe(2);
    expect(refused.stdout).toMatch(/^mixed-0 {2}queued\nmixed-1 {2}refused \(line 2\): .*ttl.*\nmixed-2 {2}queued\n/);
    expect(refused.stderr).toContain("1 of 3 messages were refused");
    const other = { ...first, message: "other" };
    expect((await batch(ndjson([other]))).code).toBe(4);
    expect((await batch(ndjson([other, unknown]))).code).toBe(2);
    expect((await stored("mixed")).length).toBe(2);
  });

  test.for([
    ["no JSON", '{"to":"@self"', "Line 2"],
    ["a key twice", '{"to":"@self","to":"@bob","message":"x","client_message_id":"bad-1"}', "duplicate_key"],
    ["no object", '"hello"', "Line 2"],
    ["no id", '{"to":"@self","message":"x"}', "--id"],
  ] as const)("with a line that has %s sends nothing of it", async ([what, line, named]) => {
    await alice.start();
    const sent = await batch(`{"to":"@self","message":"good","client_message_id":"bad-0"}\n${line}\n`);
    expect(sent.code, what).toBe(2);
    expect(sent.stderr).toContain(named);
    expect(sent.stderr).toContain("Nothing was sent");
    expect(await stored("bad")).toEqual([]);
  });

  test("without a daemon is not sent another way: exit code 3, and the next step", async () => {
    const sent = await batch(ndjson(lines(2, "nobody")), "--json");
    expect(sent.code).toBe(3);
    expect(JSON.parse(sent.stdout)).toMatchObject({ error: "daemon_unreachable", sent: false });
    expect(sent.stderr).toContain("claudemesh daemon up");
    const nothing = await batch("\n");
    expect(nothing.code).toBe(2);
  });

  test.for(["outbox.before_commit@2", "outbox.after_commit@2"])(
    "whose daemon dies at %s leaves lines open, says so, and is whole when it is run again",
    async (point) => {
      const name = `dies-${point.slice(7, 10)}`;
      await alice.start({ failpoints: `${point}=crash` });
      const sent = await batch(ndjson(lines(250, name)), "--json");
      expect(sent.code).toBe(3);
      expect(sent.stderr).toContain("run the same command again");
      expect(JSON.parse(sent.stdout)).toMatchObject({ accepted: 100, refused: 0, unanswered: 100, not_sent: 50 });
      await alice.start();
      const again = await batch(ndjson(lines(250, name)), "--json");
      expect(again.code).toBe(0);
      expect(JSON.parse(again.stdout)).toMatchObject({ accepted: 250 });
      await until("the broker has all", async () => (await stored(name)).every(({ status }) => status === "done"));
      expect((await stored(name)).length).toBe(250);
    },
  );
});
