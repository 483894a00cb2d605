// Waiting for messages and watching events from a shell: real processes, exit codes, and what is on which stream.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { claudemeshBin, runCli, runJson } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

type Page = { readonly items: { readonly body: string; readonly id: string }[]; readonly next_cursor: string };

describe("in a mesh with one daemon", () => {
  const world = new World();
  let alice: Peer;
  const started = new Set<ChildProcess>();

  beforeAll(async () => {
    await world.startBroker();
    alice = await world.addPeer("alice");
    await alice.start();
  });

  afterAll(async () => {
    for (const child of started) child.kill();
    await world.end();
  });

  /** A command that goes on, with the lines that it has printed so far. */
  function start(...args: readonly string[]): { readonly lines: string[]; readonly end: () => Promise<number | null> } {
    const child = spawn(claudemeshBin, args, { env: { ...process.env, CLAUDEMESH_HOME: alice.home } });
    started.add(child);
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
    const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
    return {
      lines,
      end: () => {
        child.kill("SIGINT");
        return closed;
      },
    };
  }

  const send = (text: string) => runJson(["send", "@self", text], { home: alice.home });
  const streams = async () => {
    const health = await runJson<{ event_streams: number }>(["daemon", "status"], { home: alice.home });
    return health.event_streams;
  };

  test("inbox --wait blocks until something arrives, prints it, and says where to go on", async () => {
    const waiting = runCli(["inbox", "--wait", "60s", "--json"], { home: alice.home });
    await until("a caller waits", async () => (await streams()) > 0);
    await send("first");
    const { code, stdout } = await waiting;
    expect(code).toBe(0);
    const page = JSON.parse(stdout) as Page;
    expect(page.items.map(({ body }) => body)).toEqual(["first"]);
    await send("second");
    const next = await runJson<Page>(["inbox", "--wait", "60s", "--cursor", page.next_cursor], { home: alice.home });
    expect(next.items.map(({ body }) => body)).toEqual(["second"]);
  });

  test("inbox --wait ends with exit code 1 and no items when nothing arrives", async () => {
    const nothing = await runCli(["inbox", "--wait", "300ms", "--json"], { home: alice.home });
    expect(nothing.code).toBe(1);
    const page = JSON.parse(nothing.stdout) as Page;
    expect(page.items).toEqual([]);
    expect(nothing.stderr).toContain("Nothing arrived within 0.3 s");
    expect(nothing.stderr).toContain(page.next_cursor);
    const plain = await runCli(["inbox", "--wait", "300ms"], { home: alice.home });
    expect(plain).toMatchObject({ code: 1, stdout: "" });
  });

  test("inbox --follow prints each message on a line as it arrives, and ends well on Ctrl-C", async () => {
    const before = await streams();
    const follow = start("inbox", "--follow", "--json");
    await until("a caller follows", async () => (await streams()) > before);
    await send("third");
    await send("fourth");
    await until("both are printed", async () => follow.lines.length >= 2);
    expect(follow.lines.map((line) => (JSON.parse(line) as { body: string }).body)).toEqual(["third", "fourth"]);
    expect(await follow.end()).toBe(0);
  });

  test("events prints one JSON value per line, each with an id to resume from", async () => {
    const events = start("events", "--json");
    await until("the stream is open", async () => events.lines.length > 0);
    await send("fifth");
    const parsed = () =>
      events.lines.map((line) => JSON.parse(line) as { event: string; id: string; data: { body?: string } });
    await until("the message is shown", async () => parsed().some(({ event }) => event === "message"));
    const all = parsed();
    expect(all[0]).toMatchObject({ event: "broker_status", data: { state: "online" } });
    expect(all.filter(({ event }) => event === "outbox").length).toBeGreaterThan(1);
    expect(await events.end()).toBe(0);
    await send("sixth");
    const resumed = start("events", "--json", "--last-event-id", all[0]?.id ?? "");
    const bodies = () =>
      resumed.lines
        .map((line) => JSON.parse(line) as { event: string; data: { body?: string } })
        .flatMap(({ event, data }) => (event === "message" ? [data.body] : []));
    await until("both are shown", async () => bodies().length >= 2);
    expect(bodies()).toEqual(["fifth", "sixth"]);
    expect(await resumed.end()).toBe(0);
  });

  test("peers lists who is connected", async () => {
    const { items } = await runJson<{ items: { name: string }[] }>(["peers"], { home: alice.home });
    expect(items.map(({ name }) => name)).toEqual(["alice"]);
    expect((await runCli(["peers"], { home: alice.home })).stdout).toMatch(/NAME .*\nalice/);
  });

  test("daemon rotate-token puts a new token into its file and shows it nowhere", async () => {
    const rotated = await runCli(["daemon", "rotate-token", "--json"], { home: alice.home });
    expect(rotated.code).toBe(0);
    const { token_file: file } = JSON.parse(rotated.stdout) as { token_file: string };
    const token = readFileSync(file, "utf8").trim();
    await runJson(["daemon", "rotate-token"], { home: alice.home });
    expect(readFileSync(file, "utf8").trim()).not.toBe(token);
    expect(rotated.stdout + rotated.stderr).not.toContain(token);
  });

  test("wrong usage is refused before anything is asked", async () => {
    for (const args of [
      ["--wait", "30"],
      ["--wait", "0s"],
      ["--wait", "30s", "--follow"],
      ["--follow", "--limit", "5"],
    ]) {
      expect((await runCli(["inbox", ...args], { home: alice.home })).code, args.join(" ")).toBe(2);
    }
  });
});
