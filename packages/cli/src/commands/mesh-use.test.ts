// Which mesh commands are about where none is named: chosen, shown and forgotten.
import { DatabaseSync } from "node:sqlite";
import { ensureMeshDir, meshPaths, writeMeshConfig } from "@claudemesh/client/home";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeTemporaryFolder } from "../../../../tests/support/broker-harness.ts";
import { buildProgram } from "../program.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";

let home: string;

beforeEach(() => {
  home = makeTemporaryFolder();
  for (const name of ["acme", "zeta"]) {
    const paths = meshPaths(home, name);
    ensureMeshDir(paths);
    const id = "01890000-0000-7000-8000-000000000001";
    writeMeshConfig(paths, { id, name, broker: "ws://127.0.0.1:1", member_name: "alice" });
  }
});

afterEach(() => {
  process.exitCode = undefined;
});

async function runHere(words: string, env = {}) {
  process.exitCode = undefined;
  const shell = createRecordingShell({ home, env });
  const path = words.split(" ").slice(0, 2).join(" ");
  const program = await buildProgram(shell, (entry) => entry.path === path);
  await program.parseAsync(words.split(" "), { from: "user" });
  return { code: process.exitCode ?? 0, out: shell.printed.join("\n"), err: shell.complaints.join("\n") };
}

const marked = (out: string) => out.split("\n").filter((line) => line.startsWith("*"));

test("mesh use chooses, mesh list marks it, and --none forgets it", async () => {
  expect((await runHere("mesh list")).out).toContain("claudemesh mesh use <name>");
  expect((await runHere("mesh use zeta")).out).toBe("Commands without --mesh are about zeta from now on.");
  expect(marked((await runHere("mesh list")).out)).toEqual([expect.stringMatching(/^\* +zeta /)]);
  expect(JSON.parse((await runHere("mesh list --json")).out)).toMatchObject({
    items: [
      { mesh: "acme", current: false },
      { mesh: "zeta", current: true },
    ],
  });
  expect(JSON.parse((await runHere("mesh use --none --json")).out)).toEqual({ mesh: null });
  expect(marked((await runHere("mesh list")).out)).toEqual([]);
});

test("mesh list says which memberships ended, and how to be a member again", async () => {
  const db = new DatabaseSync(meshPaths(home, "zeta").outboxDb);
  db.exec("CREATE TABLE daemon_state (key TEXT PRIMARY KEY, value TEXT)");
  db.prepare("INSERT INTO daemon_state VALUES ('membership_ended', ?)").run(JSON.stringify({ at: 1_763_600_000_000 }));
  db.close();
  const { out } = await runHere("mesh list");
  expect(out.match(/removed from \w+/g)).toEqual(["removed from zeta"]);
  expect(out).toContain("claudemesh daemon remint --mesh zeta --invite <invite>");
  expect(JSON.parse((await runHere("mesh list --json")).out)).toMatchObject({
    items: [{ membership_ended_at: null }, { membership_ended_at: 1_763_600_000_000 }],
  });
});

test("the environment goes before the choice, and mesh use says so", async () => {
  const env = { CLAUDEMESH_MESH: "acme" };
  expect((await runHere("mesh use zeta", env)).out).toContain("CLAUDEMESH_MESH=acme goes first");
  expect(marked((await runHere("mesh list", env)).out)).toEqual([expect.stringMatching(/^\* +acme /)]);
});

test("a mesh that is not there is not chosen, and a command that was pointed at it says by what", async () => {
  expect(await runHere("mesh use gone")).toMatchObject({ code: 5, err: expect.stringContaining('no mesh "gone"') });
  const lost = await runHere("mesh members", { CLAUDEMESH_MESH: "gone" });
  expect(lost).toMatchObject({ code: 5, err: expect.stringContaining("CLAUDEMESH_MESH") });
});

test("mesh use needs a name or --none, and not both", async () => {
  await expect(runHere("mesh use")).rejects.toMatchObject({ exitCode: 1, code: "commander.error" });
  await expect(runHere("mesh use acme --none")).rejects.toMatchObject({ code: "commander.error" });
});

test("what a command says to do next names the mesh that it was about", async () => {
  const away = await runHere("daemon status", { CLAUDEMESH_MESH: "zeta" });
  expect(away).toMatchObject({ code: 3, err: expect.stringContaining("--mesh zeta") });
  const queues = await runHere("queue lease jobs", { CLAUDEMESH_MESH: "zeta" });
  expect(queues.err).toContain("`claudemesh daemon up --mesh zeta`");
});
