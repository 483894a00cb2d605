// MSG-1, seen from outside: strace shows a completed fsync or fdatasync of the outbox between the arrival of each send
// and its 202. Needs strace; without it the test says so (and fails where every test must run).
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { claudemeshBin, LongRunning, runJson } from "./support/process.ts";
import { World } from "./support/world.ts";

const hasStrace = spawnSync("strace", ["-V"]).status === 0;
if (!hasStrace) {
  const message = "skipped: tests/flush-before-answer.test.ts needs strace";
  if (process.env.CLAUDEMESH_REQUIRE_SERVICES === "1") throw new Error(message);
  process.stdout.write(`${message}\n`);
}

type Event = { readonly at: number; readonly what: "flush" | "answer" };

describe.runIf(hasStrace)("the outbox is flushed before each 202", () => {
  const world = new World();
  const traceFolder = mkdtempSync(join(tmpdir(), "cm-strace-"));
  const trace = join(traceFolder, "trace");
  beforeAll(async () => {
    await world.startBroker();
    await world.addPeer("alice");
  });
  afterAll(async () => {
    await world.end();
    rmSync(traceFolder, { recursive: true, force: true });
  });

  test("for sends one by one", async () => {
    const home = join(world.folder, "alice");
    const wrapped = [
      "-f",
      "-ttt",
      "-y",
      "-s",
      "64",
      "-e",
      "trace=fsync,fdatasync,write,writev,sendto,sendmsg",
      "-o",
      trace,
    ];
    const daemon = new LongRunning<{ pid: number }>(["daemon", "up", "--mesh", world.mesh, "--foreground"], {
      home,
      wrapper: ["strace", ...wrapped, claudemeshBin],
    });
    const { pid } = await daemon.ready;
    for (let n = 0; n < 20; n++) await runJson(["send", "@self", `flushed ${n}`], { home });
    // The daemon itself is asked: strace ends with what it traces, and its file is whole then.
    process.kill(pid, "SIGTERM");
    expect(await daemon.exited).toEqual({ code: 0, signal: null });
    const events = readEvents(readFileSync(trace, "utf8"));
    const answers = events.filter((event) => event.what === "answer");
    expect(answers.length).toBe(20);
    for (const [index, answer] of answers.entries()) {
      const previous = answers[index - 1]?.at ?? 0;
      const flushed = events.some((event) => event.what === "flush" && event.at > previous && event.at <= answer.at);
      expect(flushed, `answer ${index} went out without a flush of the outbox since answer ${index - 1}`).toBe(true);
    }
  });
});

/** Flushes of the outbox that returned 0, at the moment they returned, and the writes that carry a 202. */
function readEvents(text: string): Event[] {
  const events: Event[] = [];
  const open = new Set<string>();
  for (const line of text.split("\n")) {
    const [, thread = "", time = ""] = /^(\d+)\s+(\d+\.\d+)/.exec(line) ?? [];
    const at = Number(time);
    if (/f(data)?sync\(\d+<[^>]*outbox\.db(-wal)?>/.test(line)) {
      if (line.includes("unfinished")) open.add(thread);
      else if (/= 0$/.test(line)) events.push({ at, what: "flush" });
    } else if (/<\.\.\. f(data)?sync resumed>.*= 0$/.test(line) && open.delete(thread)) {
      events.push({ at, what: "flush" });
    } else if (line.includes("HTTP/1.1 202")) {
      events.push({ at, what: "answer" });
    }
  }
  return events;
}
