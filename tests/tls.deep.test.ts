// A broker with a certificate of its operator's own making, and a home that trusts it: members, daemons and messages
// over WSS; invites that say where the broker is to be reached; a certificate renewed with SIGHUP.
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LongRunning, runCli, runJson } from "./support/process.ts";
import { makeCertificate } from "./support/self-signed.ts";
import { until } from "./support/world.ts";

type Ready = { readonly url: string; readonly admin_token_file: string };

let folder: string;
let broker: LongRunning<Ready> | undefined;
const daemons: LongRunning<unknown>[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cm-tls-"));
});
afterEach(async () => {
  await Promise.all(daemons.splice(0).map((daemon) => daemon.kill()));
  await broker?.kill();
  rmSync(folder, { recursive: true, force: true });
});

test("members reach it through a public name, over WSS, with the certificate they were given", async () => {
  const { cert, key } = makeCertificate(folder, "first");
  const serve = ["broker", "serve", "--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key];
  broker = new LongRunning<Ready>([...serve, "--log-level", "info"], { home: folder });
  const ready = await broker.ready;
  expect(ready.url).toMatch(/^https:\/\/0\.0\.0\.0:/);
  expect(broker.stderr).toContain("--public-url");
  expect(broker.stderr).not.toContain("no_tls");
  await broker.kill("SIGTERM");

  const { port } = new URL(ready.url);
  const publicUrl = `https://localhost:${port}`;
  const again = ["broker", "serve", "--listen", `0.0.0.0:${port}`, "--tls-cert", cert, "--tls-key", key];
  broker = new LongRunning<Ready>([...again, "--public-url", publicUrl], { home: folder });
  const { admin_token_file: adminTokenFile } = await broker.ready;
  expect(broker.stderr).not.toContain("no_public_url");

  const [alice, bob] = [join(folder, "alice"), join(folder, "bob")];
  const create = ["mesh", "create", "acme", "--broker", publicUrl, "--admin-token-file", adminTokenFile];
  const distrustful = await runCli([...create, "--name", "alice", "--json"], { home: alice, cwd: folder });
  expect(distrustful.code).toBe(3);
  expect(JSON.parse(distrustful.stdout)).toMatchObject({ error: "broker_unreachable" });

  const made = await runJson<{ invite: string }>([...create, "--name", "alice", "--ca", cert], {
    home: alice,
    cwd: folder,
  });
  expect(decodeInvite(made.invite).broker).toBe(publicUrl);
  expect(readFileSync(join(alice, "trusted-ca.pem"), "utf8")).toContain("BEGIN CERTIFICATE");
  // Another way to say it, for one command.
  await runJson(["mesh", "join", made.invite, "--name", "bob"], {
    home: bob,
    cwd: folder,
    env: { CLAUDEMESH_CA: cert },
  });
  for (const [home, env] of [
    [alice, {}],
    [bob, { NODE_EXTRA_CA_CERTS: cert }],
  ] as const) {
    const daemon = new LongRunning(["daemon", "up", "--foreground"], { home, env });
    daemons.push(daemon);
    await daemon.ready;
  }
  await runJson(["send", "@bob", "over TLS", "--id", "m1"], { home: alice });
  await until("bob has it", async () => {
    const { items } = await runJson<{ items: unknown[] }>(["inbox"], { home: bob });
    return items.length === 1 || undefined;
  });

  const renewed = makeCertificate(folder, "second");
  copyFileSync(renewed.cert, cert);
  copyFileSync(renewed.key, key);
  process.kill(broker.pid, "SIGHUP");
  await until("the renewed certificate is shown", async () => {
    const listed = await runCli(["mesh", "members", "--json"], { home: alice });
    return listed.code !== 0 || undefined;
  });
  const trusted = { home: alice, env: { CLAUDEMESH_CA: renewed.cert } };
  expect(await runJson<{ items: unknown[] }>(["mesh", "members"], trusted)).toMatchObject({ items: [{}, {}] });
  // A connection that was there before goes on.
  await runJson(["send", "@bob", "still there", "--id", "m2"], { home: alice });
});

test("a file that holds no certificate is refused by its name", async () => {
  const refused = await runCli(["mesh", "list", "--json"], {
    home: folder,
    env: { CLAUDEMESH_CA: import.meta.filename },
  });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("no certificate");
});

test("a broker that others reach without TLS says so at its start", async () => {
  for (const [url, warned] of [
    ["http://mesh.example.org:7600", true],
    ["https://mesh.example.org", false],
    ["http://127.0.0.1:7600", false],
  ] as const) {
    const serve = ["broker", "serve", "--listen", "127.0.0.1:0", "--public-url", url, "--log-level", "info"];
    const store = `sqlite:${join(folder, `in-clear-${warned}.db`)}`;
    const plain = new LongRunning<Ready>([...serve, "--store", store], { home: folder });
    await plain.ready;
    expect(plain.stderr.includes("no_tls"), url).toBe(warned);
    await plain.kill("SIGTERM");
  }
});
