// Two machines, each a network namespace of its own with a wire between them, do what docs/two-machines.md says.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeInvite, encodeInvite } from "@claudemesh/protocol/wire/invite";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { claudemeshBin, LongRunning, type ProcessOptions, runCli, runJson } from "./support/process.ts";
import { until } from "./support/world.ts";

const unique = process.pid.toString(36);
const spaces = { first: `cma${unique}`, second: `cmb${unique}` } as const;
const addresses = { first: "10.77.0.1", second: "10.77.0.2" } as const;
const page = readFileSync(new URL("../docs/two-machines.md", import.meta.url), "utf8");

type Machine = keyof typeof spaces;
const ip = (...args: string[]) => execFileSync("ip", args, { stdio: "pipe" });
const canMakeHosts = spawnSync("ip", ["netns", "list"]).status === 0 && process.getuid?.() === 0;
if (!canMakeHosts && process.env.CLAUDEMESH_REQUIRE_SERVICES !== "1") {
  process.stderr.write("two machines: skipped, because network namespaces take root and iproute2\n");
}

let folder: string;
const running: LongRunning<unknown>[] = [];

function on(machine: Machine, home: string): ProcessOptions {
  return { home: join(folder, home), cwd: folder, wrapper: ["ip", "netns", "exec", spaces[machine], claudemeshBin] };
}

function keep<T>(process: LongRunning<T>): LongRunning<T> {
  running.push(process);
  return process;
}

beforeAll(() => {
  if (!canMakeHosts) return;
  for (const space of Object.values(spaces)) ip("netns", "add", space);
  ip(
    "link",
    "add",
    `v${spaces.first}`,
    "netns",
    spaces.first,
    "type",
    "veth",
    "peer",
    `v${spaces.second}`,
    "netns",
    spaces.second,
  );
  for (const machine of ["first", "second"] as const) {
    const space = spaces[machine];
    ip("-n", space, "addr", "add", `${addresses[machine]}/24`, "dev", `v${space}`);
    ip("-n", space, "link", "set", `v${space}`, "up");
    ip("-n", space, "link", "set", "lo", "up");
  }
});
afterAll(() => {
  if (canMakeHosts) for (const space of Object.values(spaces)) ip("netns", "del", space);
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cm-two-"));
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((process) => process.kill()));
  rmSync(folder, { recursive: true, force: true });
});

/** What the page tells people to type is what the test types. */
function onThePage(command: string): string[] {
  expect(page).toContain(`\n${command}\n`);
  return command.replace(/^claudemesh /, "").split(" ");
}

test.runIf(canMakeHosts || process.env.CLAUDEMESH_REQUIRE_SERVICES === "1")(
  "a second machine joins over TLS by an invite alone, and messages go both ways",
  async () => {
    const [alice, bob] = [on("first", "alice"), on("second", "bob")];
    const up = keep(
      new LongRunning<{ public_url: string }>([...onThePage("claudemesh up --share"), "--name", "alice"], alice),
    );
    expect((await up.ready).public_url).toBe(`https://${addresses.first}:7600`);
    const { invite } = await runJson<{ invite: string }>(onThePage("claudemesh mesh invite"), alice);
    expect(decodeInvite(invite)).toMatchObject({ broker: `https://${addresses.first}:7600` });

    const join = onThePage("claudemesh mesh join - --name worker-1");
    expect(await runCli(join, { ...bob, stdin: `${invite}\n` })).toMatchObject({ code: 0 });
    const daemon = keep(new LongRunning(["daemon", "up", "--foreground"], bob));
    await daemon.ready;
    await runJson(["send", "@alice", "from the second machine"], bob);
    await runJson(["send", "@worker-1", "from the first machine"], alice);
    for (const [options, text] of [
      [alice, "from the second machine"],
      [bob, "from the first machine"],
    ] as const) {
      await until(text, async () => {
        const { items } = await runJson<{ items: { body: string }[] }>(["inbox"], options);
        return items.some(({ body }) => body === text) || undefined;
      });
    }
  },
);

test.runIf(canMakeHosts || process.env.CLAUDEMESH_REQUIRE_SERVICES === "1")(
  "a broker that shows another certificate than the invite names hears nothing",
  async () => {
    const [alice, bob] = [on("first", "alice"), on("second", "bob")];
    await keep(new LongRunning(["up", "--share", "--name", "alice"], alice)).ready;
    const { invite } = await runJson<{ invite: string }>(["mesh", "invite"], alice);
    const forged = encodeInvite({ ...decodeInvite(invite), cert_sha256: "ab".repeat(32) });
    const refused = await runCli(["mesh", "join", "-", "--name", "bob", "--json"], { ...bob, stdin: forged });
    expect(refused.code).toBe(3);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: "broker_unreachable", sent: false });
    // The invite is not spent, and still good where the certificate fits.
    expect(await runCli(["mesh", "join", "-", "--name", "bob"], { ...bob, stdin: invite })).toMatchObject({ code: 0 });
  },
);

test.runIf(canMakeHosts || process.env.CLAUDEMESH_REQUIRE_SERVICES === "1")(
  "a broker on another machine without TLS is refused, unless that is asked for",
  async () => {
    const [alice, bob] = [on("first", "alice"), on("second", "bob")];
    const listen = ["--listen", `${addresses.first}:7601`];
    const refused = await runCli(["up", ...listen], alice);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("up --share");
    expect(refused.stderr).toContain("--plain-http");
    await keep(new LongRunning(["up", ...listen, "--plain-http", "--name", "alice"], alice)).ready;
    const { invite } = await runJson<{ invite: string }>(["mesh", "invite"], alice);
    const join = ["mesh", "join", "-", "--name", "bob"];
    const inClear = await runCli(join, { ...bob, stdin: invite });
    expect(inClear.code).toBe(2);
    expect(inClear.stderr).toContain("--plain-http");
    expect(await runCli([...join, "--plain-http"], { ...bob, stdin: invite })).toMatchObject({ code: 0 });
  },
);

test.runIf(canMakeHosts || process.env.CLAUDEMESH_REQUIRE_SERVICES === "1")(
  "the public address may come from the environment, as the help says",
  async () => {
    const url = "https://build-host.example.org:7600";
    const alice = { ...on("first", "alice"), env: { CLAUDEMESH_PUBLIC_URL: url } };
    const up = keep(new LongRunning<{ public_url: string }>(["up", "--share", "--name", "alice"], alice));
    expect((await up.ready).public_url).toBe(url);
    const { invite } = await runJson<{ invite: string }>(["mesh", "invite"], alice);
    expect(decodeInvite(invite).broker).toBe(url);
  },
);
