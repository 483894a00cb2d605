// `claudemesh space …` as a user runs it, against a real broker: tables and JSON, conditions, watching, a merge with a
// conflict, and exit codes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { claudemeshBin, runCli, runJson } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

describe("claudemesh space", () => {
  const world = new World();
  let alice: Peer;
  beforeAll(async () => {
    await world.startBroker();
    alice = await world.addPeer("alice");
  });
  afterAll(() => world.end());

  const cli = (...args: string[]) => runCli(["space", ...args], { home: alice.home });
  const json = <T>(...args: string[]) => runJson<T>(["space", ...args], { home: alice.home });

  test("makes a space, writes, reads, lists, and goes back in time", async () => {
    expect(await json("create", "plan")).toMatchObject({ name: "plan", seq: 0 });
    expect((await cli("create", "plan")).code).toBe(0);
    expect(await json("ls")).toMatchObject({ items: [{ name: "plan" }] });
    expect(await json("set", "plan", "task:1", '{"owner":null}')).toEqual({
      id: "task:1",
      seq: 1,
      resolvedPendingReads: [],
      replayed: false,
    });
    const patch = '[{"op":"replace","path":"/value/owner","value":"alice"}]';
    expect(await json("patch", "plan", "task:1", patch, "--if-seq", "1")).toMatchObject({ seq: 2 });
    const late = await cli("patch", "plan", "task:1", patch, "--if-seq", "1", "--json");
    expect(late.code).toBe(4);
    expect(JSON.parse(late.stdout)).toMatchObject({ name: "ConflictError", conflicts: [{ actual: { seq: 2 } }] });
    const taken = await cli("set", "plan", "task:1", "1", "--if-seq", "0");
    expect([taken.code, taken.stderr]).toEqual([4, expect.stringContaining("task:1 is at seq 2, and not at 0")]);

    expect(await json("get", "plan", "task:1")).toEqual({
      id: "task:1",
      seq: 2,
      branch: "",
      document: { value: { owner: "alice" } },
    });
    expect((await cli("get", "plan", "task:1")).stdout).toContain('"owner": "alice"');
    expect((await cli("get", "plan", "task:9")).code).toBe(5);
    expect(await json("get", "plan", "task:1", "--at", "1")).toMatchObject({ document: { value: { owner: null } } });
    expect((await cli("at", "plan", "1")).stdout).toMatch(/ENTITY +SEQ +VALUE\ntask:1 +1 +\{"owner":null\}\n/);
    await json("set", "plan", "note:1", '{"value":7,"by":"me"}', "--document");
    expect((await cli("list", "plan")).stdout).toMatch(/note:1 +3 +7 {2}\{"by":"me"\}/);
    expect(await json("list", "plan", "--prefix", "task:")).toMatchObject({ seq: 3, items: [{ id: "task:1" }] });
    expect(await json("delete", "plan", "note:1")).toMatchObject({ seq: 4 });
    expect((await cli("log", "plan")).stdout).toMatch(/4 .* main .* delete note:1/);
    expect(await json("log", "plan", "--after", "3")).toMatchObject({ items: [{ seq: 4 }], nextAfter: null });
  });

  test("refuses what is no JSON, and what is no entity, with something to do about it", async () => {
    const broken = await cli("set", "plan", "task:1", "{broken");
    expect([broken.code, broken.stderr]).toEqual([2, expect.stringContaining("it is no JSON")]);
    expect((await cli("set", "plan", "nocolon", "1")).code).toBe(2);
    expect((await cli("get", "nowhere", "task:1")).code).toBe(5);
    expect((await cli("branch", "plan", "--delete")).stderr).toContain("goes with the name of a branch");
  });

  test("signs where the space takes signed writes only", async () => {
    await json("create", "signed");
    await json("policy", "signed", "required");
    await json("set", "signed", "task:1", '{"n":1}');
    await json("branch", "signed", "draft");
    const { items } = await json<{ readonly items: readonly object[] }>("log", "signed");
    expect(items).toMatchObject([{ invocationRef: expect.any(String) }, { invocationRef: expect.any(String) }]);
  });

  test("shows what changes until it is stopped", async () => {
    await json("create", "live");
    await json("set", "live", "task:1", "1");
    const args = ["space", "watch", "live", "--prefix", "task:", "--since", "0", "--json"];
    const child = spawn(claudemeshBin, args, { env: { ...process.env, CLAUDEMESH_HOME: alice.home } });
    onTestFinished(() => void child.kill());
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    const shown = () => lines.map((line) => JSON.parse(line) as object);
    await until("the first is shown", () => shown().length === 1 || undefined);
    await json("set", "live", "other:1", "2");
    await json("set", "live", "task:2", "3");
    await until("the second is shown", () => shown().length === 2 || undefined);
    expect(shown()).toMatchObject([
      { id: "task:1", seq: 1, document: { value: 1 } },
      { id: "task:2", seq: 3, document: { value: 3 } },
    ]);
    child.kill("SIGINT");
    expect(await once(child, "close")).toEqual([0, null]);
  });

  test("branches, shows a conflict side by side, and merges with resolutions", async () => {
    await json("create", "fork");
    await json("set", "fork", "task:1", '{"owner":null,"title":"docs"}');
    await json("set", "fork", "task:2", '"base"');
    expect(await json("branch", "fork", "draft")).toMatchObject({ name: "draft", seq: 3 });
    await json("set", "fork", "task:1", '{"owner":"alice","title":"docs"}', "--branch", "draft");
    await json("set", "fork", "task:2", '"draft"', "--branch", "draft");
    await json("set", "fork", "task:3", '"new"', "--branch", "draft");
    await json("set", "fork", "task:1", '{"owner":"bob","title":"docs"}');
    await json("set", "fork", "task:2", '"main"');
    expect((await cli("branch", "fork")).stdout).toMatch(/main +- +0\ndraft +main at 2 +3\n/);
    expect((await cli("diff", "fork", "draft")).stdout).toBe("+ task:3\n~ task:1\n~ task:2\n");

    const shown = await cli("merge", "fork", "draft");
    expect(shown.code).toBe(4);
    expect(shown.stdout).toMatch(
      /WHERE +BASE +THEIRS \(draft\) +OURS \(main\)\n\/value\/owner +null +"alice" +"bob"\n/,
    );
    expect(shown.stdout).not.toContain("/value/title");
    const file = join(world.folder, "task-1.json");
    writeFileSync(file, '{"value":"both"}');
    const resolved = ["--theirs", "--resolve", `task:1=${file}`];
    expect(await json("merge", "fork", "draft", ...resolved, "--dry-run")).toEqual({
      status: "ready",
      merged: ["task:1", "task:2", "task:3"],
    });
    expect(await json("merge", "fork", "draft", ...resolved)).toMatchObject({ status: "merged", seq: 9 });
    expect(await json("list", "fork")).toMatchObject({
      items: [{ document: { value: "both" } }, { document: { value: "draft" } }, { document: { value: "new" } }],
    });
    expect(await json("merge", "fork", "draft")).toEqual({ status: "up_to_date" });
    expect(await json("branch", "fork", "draft", "--delete")).toMatchObject({ seq: 10 });
  });
});
