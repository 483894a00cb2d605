// The registrar from the command line, with real processes: an owner approves a file, a build machine registers it, and
// whatever dies in between, it is registered once (REG-1, REG-4). And `prove`, beside a broker and on a damaged store.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { runCli, runJson } from "./support/process.ts";
import { type Peer, World } from "./support/world.ts";

type Approved = { readonly approval_id: string; readonly authorization_nonce: string; readonly not_after: number };
type Status = {
  readonly state: string;
  readonly registration?: Readonly<Record<string, unknown>>;
  readonly attempts: { readonly recorded: number; readonly retries: number };
};

let world: World | undefined;
afterEach(() => world?.end());

async function start(flags: readonly string[] = [], failpoints?: string) {
  const made = new World(flags);
  world = made;
  await made.startBroker(failpoints === undefined ? {} : { failpoints });
  const owner = await made.addPeer("owner");
  const ci = await made.addPeer("ci");
  const artifact = join(made.folder, "app.tgz");
  writeFileSync(artifact, "the artifact");
  const effect = ["--operation", "release", "--target", "prod", "--run-id", "42", "--file", artifact];
  return { world: made, owner, ci, artifact, effect };
}

const approve = (owner: Peer, effect: readonly string[], ...more: string[]) =>
  runJson<Approved>(["registrar", "approve", ...effect, ...more], { home: owner.home });

const register = (ci: Peer, effect: readonly string[], approval: Approved, key = "release-42") =>
  runCli(["registrar", "register", "--key", key, "--approval", approval.approval_id, ...effect, "--json"], {
    home: ci.home,
    env: { CLAUDEMESH_REGISTRAR_NONCE: approval.authorization_nonce },
  });

const status = (peer: Peer, key = "release-42") => runJson<Status>(["registrar", "status", key], { home: peer.home });

describe("the registrar's commands", () => {
  test("approve, register, register again, list, attempts, audit, revoke", async () => {
    const { owner, ci, effect } = await start();
    const approval = await approve(owner, effect, "--valid-for", "1h");
    expect(Object.keys(approval).sort()).toEqual(["approval_id", "authorization_nonce", "not_after"]);
    const first = await register(ci, effect, approval);
    expect(first).toMatchObject({ code: 0 });
    const made = JSON.parse(first.stdout) as { registration: object };
    expect(made).toMatchObject({ state: "registered_closed", duplicate: false });
    const again = await register(ci, effect, approval);
    expect([again.code, JSON.parse(again.stdout)]).toMatchObject([0, { ...made, duplicate: true }]);
    const other = await register(ci, effect, await approve(owner, effect), "release-43");
    expect([other.code, JSON.parse(other.stdout)]).toMatchObject([4, { code: "REPLAY_DUPLICATE" }]);
    expect(await status(ci)).toMatchObject({ state: "registered_closed", attempts: { recorded: 2, retries: 1 } });
    expect(await status(ci, "never")).toMatchObject({ state: "unknown" });
    const at = { home: owner.home };
    expect(await runJson(["registrar", "list"], at)).toMatchObject({ items: [{ registration: made.registration }] });
    expect(await runJson(["registrar", "attempts", "release-42"], at)).toMatchObject({ items: [{ won: true }, {}] });
    expect(await runJson(["registrar", "audit"], at)).toMatchObject({ items: [{ code: "REPLAY_DUPLICATE" }] });
    const { items } = await runJson<{ items: { approval_id: string; state: string }[] }>(
      ["registrar", "approvals"],
      at,
    );
    expect(items.map((item) => item.state).sort()).toEqual(["open", "spent"]);
    const open = items.find((item) => item.state === "open")?.approval_id ?? "";
    expect(await runJson(["registrar", "revoke", open], at)).toMatchObject({ state: "revoked" });
    for (const command of ["list", "audit", "approvals", "attempts release-42", "status release-42"]) {
      const shown = await runCli(["registrar", ...command.split(" ")], at);
      expect([shown.code, shown.stdout.length > 0], command).toEqual([0, true]);
    }
    const [operation, , ...unnamed] = [...effect.slice(0, -2), "--valid-for", "1h"];
    const wrong = await runCli(["registrar", "approve", operation ?? "", "x", ...unnamed, "--json"], at);
    expect([wrong.code, JSON.parse(wrong.stdout)]).toMatchObject([2, { error: "wrong_usage" }]);
    const notOwner = await runCli(["registrar", "approve", ...effect, "--json"], { home: ci.home });
    expect([notOwner.code, JSON.parse(notOwner.stdout)]).toMatchObject([1, { error: "forbidden" }]);
  });

  test("a registration that fails its verification ends with 1 and is compensated by an owner", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cm-verifier-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const verifier = join(folder, "verifier.sh");
    writeFileSync(verifier, "#!/bin/sh\ncat >/dev/null\nexit 3\n");
    chmodSync(verifier, 0o700);
    const { owner, ci, effect } = await start(["--registrar-verifier", `exec:${verifier}`]);
    const failed = await register(ci, effect, await approve(owner, effect));
    expect([failed.code, JSON.parse(failed.stdout)]).toMatchObject([1, { state: "verify_failed" }]);
    const approval = await approve(owner, effect, "--purpose", "compensate", "--key", "release-42");
    const args = ["registrar", "compensate", "release-42", "--approval", approval.approval_id];
    const done = await runJson([...args, "--nonce", approval.authorization_nonce], { home: owner.home });
    expect(done).toMatchObject({ state: "compensated" });
    expect(await status(ci)).toMatchObject({ state: "compensated" });
  });

  test("prove holds beside a running broker, and on a store without one index ends with 1 and says which", async () => {
    const { world: made } = await start();
    const at = { home: made.folder };
    const args = ["registrar", "prove", "--store", `sqlite:${made.storePath}`];
    const whole = await runJson<{ fit: boolean; criteria: { holds: boolean }[] }>(args, at);
    expect(whole).toMatchObject({ fit: true });
    expect(whole.criteria.map(({ holds }) => holds)).toEqual(Array.from({ length: 8 }, () => true));
    await made.broker.kill();
    const db = new DatabaseSync(made.storePath);
    db.exec("DROP INDEX registrar_consume_effect_key");
    db.close();
    const damaged = await runCli(args, at);
    expect(damaged.code).toBe(1);
    expect(damaged.stdout).toContain("missing: unique registrar_consume (mesh_id, effect_key)");
    expect(damaged.stdout).toContain("REPLAY_SURFACE_NOT_FIT");
  });
});

describe("a broker that dies by SIGKILL around the commit of a registration", () => {
  test.for([
    ["registrar.before_commit", "unknown"],
    ["registrar.after_commit", "registered_closed"],
  ] as const)("at %s: the client asks first, and it is registered once", async ([point, after]) => {
    const { owner, ci, effect, world: made } = await start([], `${point}@1=crash`);
    const approval = await approve(owner, effect);
    const registering = register(ci, effect, approval);
    expect((await made.broker.exited).signal, `${point} was never reached`).toBe("SIGKILL");
    // No caller but the client, which is waiting to ask again, has spoken to the broker when it is back.
    const db = new DatabaseSync(made.storePath, { readOnly: true });
    const count = (table: string) => Object.values(db.prepare(`SELECT count(*) FROM ${table}`).get() ?? {})[0];
    const stood = after === "unknown" ? 0 : 1;
    expect([count("registrar_consume"), count("registrar_registration"), count("registrar_verification")]).toEqual([
      stood,
      stood,
      0,
    ]);
    await made.startBroker();
    const { code, stdout } = await registering;
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      { state: "registered_closed", duplicate: after !== "unknown" },
    ]);
    expect([count("registrar_consume"), count("registrar_registration"), count("registrar_verification")]).toEqual([
      1, 1, 1,
    ]);
    db.close();
    expect(await status(ci)).toMatchObject({ state: "registered_closed" });
  });
});
