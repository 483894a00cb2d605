// What a new user does first: `claudemesh up`, send to oneself, look into the inbox, stop with Ctrl-C, start again.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LongRunning, runCli, runJson } from "./support/process.ts";
import { until } from "./support/world.ts";

type Ready = { readonly url: string; readonly socket: string; readonly http_port: number; readonly mesh: string };
type Inbox = { readonly items: readonly { readonly body: string; readonly client_message_id: string }[] };

describe("claudemesh up", () => {
  let home = "";
  let running: LongRunning<Ready> | undefined;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "cm-"));
  });
  afterEach(async () => {
    await running?.kill();
    rmSync(home, { recursive: true, force: true });
  });

  const up = async () => {
    running = new LongRunning<Ready>(["up", "--listen", "127.0.0.1:0"], { home });
    return { process: running, ready: await running.ready };
  };
  const inboxOf = (bodies: readonly string[]) =>
    until(`the inbox holds ${bodies.join(", ")}`, async () => {
      const { items } = await runJson<Inbox>(["inbox"], { home });
      return items.length >= bodies.length ? items.map((item) => item.body) : undefined;
    });

  test("carries a message to oneself, stops on Ctrl-C with exit code 0, and finds everything again", async () => {
    const first = await up();
    const sent = await runJson<{ client_message_id: string; status: string }>(["send", "@self", "hello"], { home });
    expect(sent.client_message_id).not.toBe("");
    expect(["queued", "inflight", "done"]).toContain(sent.status);
    expect(await inboxOf(["hello"])).toEqual(["hello"]);

    await first.process.kill("SIGINT");
    expect(await first.process.exited).toEqual({ code: 0, signal: null });

    const second = await up();
    expect(await inboxOf(["hello"])).toEqual(["hello"]);
    await runJson(["send", "@self", "hello again"], { home });
    expect(await inboxOf(["hello", "hello again"])).toEqual(["hello", "hello again"]);
    await second.process.kill("SIGTERM");
    expect(await second.process.exited).toEqual({ code: 0, signal: null });
  });

  test("puts its public address into invites, and keeps to the loopback itself", async () => {
    const url = "http://mesh.example.org:7600";
    running = new LongRunning<Ready>(["up", "--listen", "127.0.0.1:0", "--public-url", url], { home });
    const ready = await running.ready;
    expect(ready).toMatchObject({ public_url: url, url: expect.stringContaining("127.0.0.1") });
    const { stdout } = await runCli(["mesh", "invite"], { home });
    expect(stdout).toContain(`It leads to ${url}.`);
    expect(decodeInvite(stdout.split("\n")[0] ?? "").broker).toBe(url);
  });

  test("answers the same id again with the first answer, and other content with a conflict and exit code 4", async () => {
    await up();
    const args = ["send", "@self", "once", "--id", "only-1"];
    const first = await runJson<{ outbox_id: string; duplicate: boolean }>(args, { home });
    const again = await runJson<{ outbox_id: string; duplicate: boolean }>(args, { home });
    expect(first.duplicate).toBe(false);
    expect(again).toMatchObject({ outbox_id: first.outbox_id, duplicate: true });
    const other = await runCli(["send", "@self", "another text", "--id", "only-1", "--json"], { home });
    expect(other.code).toBe(4);
    expect(JSON.parse(other.stdout)).toMatchObject({ error: "idempotency_key_reused", client_message_id: "only-1" });
  });

  test("keeps every file to its owner", async () => {
    await up();
    const folder = join(home, "daemon", "local");
    const modeOf = (path: string) => statSync(path).mode & 0o777;
    expect(modeOf(folder)).toBe(0o700);
    for (const file of ["sock", "local_token", "keypair.json", "outbox.db", "inbox.db", "config.toml", "daemon.log"]) {
      expect(modeOf(join(folder, file)), file).toBe(0o600);
    }
    expect(modeOf(join(home, "broker", "broker.db"))).toBe(0o600);
    expect(modeOf(join(home, "broker", "broker.db.admin-token"))).toBe(0o600);
  });

  test("refuses a second start on the same home, says why, and what to do", async () => {
    await up();
    const second = await runCli(["up", "--listen", "127.0.0.1:0", "--json"], { home });
    expect(second.code).toBe(1);
    expect(JSON.parse(second.stdout)).toMatchObject({ error: "already_running" });
    expect(second.stderr).toContain("`claudemesh daemon down`");
  });
});

describe("without anything running", () => {
  let home = "";
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "cm-"));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  test("commands say what to do next, with the documented exit codes", async () => {
    const inbox = await runCli(["inbox"], { home });
    expect(inbox.code).toBe(5);
    expect(inbox.stderr).toContain("claudemesh up");
    const usage = await runCli(["send", "@self"], { home });
    expect(usage.code).toBe(2);
    const unknown = await runCli(["frobnicate"], { home });
    expect(unknown.code).toBe(2);
    const help = await runCli(["send", "--help"], { home });
    expect(help.code).toBe(0);
    expect(help.stdout).toContain("Examples:");
  });
});
