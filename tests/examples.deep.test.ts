// The programs in examples/ do what they say, against a real broker and real daemons, through crashes where they promise
// to survive them.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { claudemeshBin, runCli, runJson } from "./support/process.ts";
import { type Peer, until, World } from "./support/world.ts";

const folder = fileURLToPath(new URL("../examples/", import.meta.url));
const world = new World();
const started = new Set<ChildProcess>();
let alice: Peer;
let bob: Peer;

beforeAll(async () => {
  [alice, bob] = await world.startWithPair();
  await Promise.all([alice.start(), bob.start()]);
});

afterAll(async () => {
  for (const child of started) endGroup(child, "SIGKILL");
  await world.end();
});

function endGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, signal);
}

type Example = {
  readonly lines: string[];
  readonly kill: (signal: NodeJS.Signals) => void;
  readonly ended: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
};

function run(peer: Peer, name: string, ...args: readonly string[]): Example {
  const program = join(folder, name);
  const [command, first] = name.endsWith(".sh") ? ["/bin/sh", [program]] : [process.execPath, [program]];
  const child = spawn(command, [...first, ...args], {
    cwd: world.folder,
    env: {
      ...process.env,
      CLAUDEMESH_HOME: peer.home,
      PATH: `${dirname(claudemeshBin)}:${process.env.PATH}`,
    },
    stdio: ["ignore", "pipe", "pipe"],
    // With what it starts it is one group, which ends as one.
    detached: true,
  });
  started.add(child);
  let stdout = "";
  let stderr = "";
  const lines: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    lines.splice(0, lines.length, ...stdout.split("\n").slice(0, -1));
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Awaited<Example["ended"]>>((resolve) => {
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
  return { lines, ended, kill: (signal) => endGroup(child, signal) };
}

test("send-and-wait gets the answer of an agent that was killed and goes on, and each question is answered once", async () => {
  const agent = run(bob, "answering-agent.ts", "--state", "bob.cursor");
  await until("the agent is ready", () => agent.lines.includes("ready") || undefined);
  const first = await run(alice, "send-and-wait.ts", "@bob", "is 42 ready?", "--id", "q-1").ended;
  expect(first, first.stderr).toMatchObject({ code: 0, stdout: "you wrote 12 characters: IS 42 READY?\n" });

  await until("the agent has its place on disk", () => agent.lines.some((line) => line.startsWith("answered q-1")));
  agent.kill("SIGKILL");
  await agent.ended;
  const asked = run(alice, "send-and-wait.ts", "@bob", "and 43?", "--id", "q-2");
  const next = run(bob, "answering-agent.ts", "--state", "bob.cursor");
  expect(await asked.ended).toMatchObject({ code: 0, stdout: "you wrote 7 characters: AND 43?\n" });

  const again = await run(alice, "send-and-wait.ts", "@bob", "is 42 ready?", "--id", "q-1").ended;
  expect(again.stderr).toContain("q-1 done (asked before)");
  expect(again.stdout).toBe(first.stdout);
  const answers = (await alice.inbox()).map((item) => item.client_message_id).filter((id) => id.startsWith("re:"));
  expect(answers.toSorted()).toEqual(["re:q-1", "re:q-2"]);
  next.kill("SIGTERM");
  expect((await next.ended).code).toBe(0);
});

test("queue-worker does every job once, gives back what fails, and shares the work", async () => {
  await runJson(["queue", "create", "builds", "--max-deliveries", "2"], { home: alice.home });
  const jobs = Array.from({ length: 15 }, (_, n) => `job-${n}`);
  for (const id of jobs) {
    const message = id === "job-7" ? "{}" : JSON.stringify({ command: `make ${id}` });
    await alice.client.send({ to: "queue:builds", message, client_message_id: id });
  }
  await until("the broker has all jobs", async () =>
    (await alice.outbox())
      .filter((row) => row.client_message_id.startsWith("job-"))
      .every((row) => row.status === "done"),
  );
  const workers = [
    run(alice, "queue-worker.ts", "builds", "--until-empty"),
    run(bob, "queue-worker.ts", "builds", "--until-empty"),
  ];
  const ends = await Promise.all(workers.map((worker) => worker.ended));
  expect(ends.map(({ code }) => code)).toEqual([0, 0]);
  const done = ends.flatMap(({ stdout }) => stdout.split("\n").filter((line) => line.endsWith(" done")));
  expect(done.toSorted()).toEqual(
    jobs
      .filter((id) => id !== "job-7")
      .map((id) => `${id} done`)
      .toSorted(),
  );
  const parked = await runCli(["queue", "parked", "builds", "--json"], { home: alice.home });
  expect(JSON.parse(parked.stdout).items).toMatchObject([{ client_message_id: "job-7" }]);
});

test("retry-safe-send outlives a daemon that dies between its commit and its answer, and is one message", async () => {
  await alice.kill("SIGTERM");
  await alice.start({ failpoints: "outbox.after_commit=crash" });
  const sending = run(alice, "retry-safe-send.ts", "build-42", "@bob", "green");
  expect((await alice.process.exited).signal).toBe("SIGKILL");
  await alice.start();
  const { code, stdout, stderr } = await sending.ended;
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/^build-42 \w+ duplicate=true\n$/);

  expect((await run(alice, "retry-safe-send.ts", "build-42", "@bob", "green").ended).code).toBe(0);
  expect((await run(alice, "retry-safe-send.ts", "build-42", "@bob", "red").ended).code).toBe(4);
  const copies = async () => (await bob.inbox()).filter((item) => item.client_message_id === "build-42");
  await until("bob has it", async () => (await copies()).length > 0 || undefined);
  expect((await copies()).map(({ body }) => body)).toEqual(["green"]);
});

test("on-message.sh hands over what arrives, page by page, and keeps its place through a kill", async () => {
  const handler = ["sh", "-c", "cat >> seen.jsonl"];
  const seen = () => readFileSync(join(world.folder, "seen.jsonl"), "utf8");
  const script = run(bob, "on-message.sh", "place.txt", ...handler);
  await alice.client.send({ to: "@bob", message: "for the shell", client_message_id: "sh-1" });
  await until("the script has it", () => readIfThere(seen).includes("for the shell") || undefined);
  const arrived = (await bob.inbox()).find((item) => item.client_message_id === "sh-1")?.id ?? "";
  const cursor = () => readFileSync(join(world.folder, "place.txt"), "utf8");
  await until("the cursor is kept", () => readIfThere(cursor) >= arrived || undefined);
  script.kill("SIGKILL");
  await script.ended;
  await alice.client.send({ to: "@bob", message: "while nobody looked", client_message_id: "sh-2" });
  const next = run(bob, "on-message.sh", "place.txt", ...handler);
  await until("the next one has the other", () => readIfThere(seen).includes("while nobody looked") || undefined);
  expect(seen().split("for the shell").length - 1).toBe(1);
  next.kill("SIGKILL");
  await next.ended;
});

function readIfThere(read: () => string): string {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
