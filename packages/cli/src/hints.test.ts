import { ensureMeshDir, meshPaths, writeMeshConfig } from "@claudemesh/client/home";
import { writeUsedMesh } from "@claudemesh/client/internal/used-mesh";
import { beforeEach, describe, expect, it, test } from "vitest";
import { makeTemporaryFolder } from "../../../tests/support/broker-harness.ts";
import { commandEntries } from "./command-table.ts";
import { hint, nameMesh, takesMesh } from "./hints.ts";
import { buildProgram } from "./program.ts";
import { pathsFor } from "./shell.ts";
import { createRecordingShell } from "./testing/recording-shell.ts";

let home: string;

beforeEach(() => {
  home = makeTemporaryFolder();
});

function addMesh(name: string): void {
  const paths = meshPaths(home, name);
  ensureMeshDir(paths);
  const id = "01890000-0000-7000-8000-000000000001";
  writeMeshConfig(paths, { id, name, broker: "ws://a", member_name: "alice" });
}

describe("a hint", () => {
  it("stays as it is in a home of one mesh, and names the mesh in a home of two", () => {
    addMesh("acme");
    const shell = createRecordingShell({ home });
    pathsFor(shell, {});
    expect(hint(shell, "Run: claudemesh queue list")).toBe("Run: claudemesh queue list");
    addMesh("zeta");
    expect(hint(shell, "Run: claudemesh queue list")).toBe("Run: claudemesh queue list --mesh acme");
  });

  it("names the mesh that the command was about, however it was named", () => {
    addMesh("acme");
    addMesh("zeta");
    const asked = createRecordingShell({ home, env: { CLAUDEMESH_MESH: "acme" } });
    pathsFor(asked, { mesh: "zeta" });
    expect(hint(asked, "claudemesh inbox")).toBe("claudemesh inbox --mesh zeta");
    const environment = createRecordingShell({ home, env: { CLAUDEMESH_MESH: "zeta" } });
    writeUsedMesh(home, "acme");
    pathsFor(environment, {});
    expect(hint(environment, "claudemesh inbox")).toBe("claudemesh inbox --mesh zeta");
    const used = createRecordingShell({ home });
    pathsFor(used, {});
    expect(hint(used, "claudemesh inbox")).toBe("claudemesh inbox --mesh acme");
  });

  it("of a command that is about no mesh of the home stays as it is", () => {
    addMesh("acme");
    addMesh("zeta");
    expect(hint(createRecordingShell({ home }), "claudemesh inbox")).toBe("claudemesh inbox");
  });
});

test.each([
  ['claudemesh send queue:q "…"', 'claudemesh send --mesh m queue:q "…"'],
  ["claudemesh daemon outbox requeue 01K9", "claudemesh daemon outbox requeue --mesh m 01K9"],
  ["look with `claudemesh status build-42`.", "look with `claudemesh status --mesh m build-42`."],
  [
    "claudemesh topic subscribe t; claudemesh inbox",
    "claudemesh topic subscribe --mesh m t; claudemesh inbox --mesh m",
  ],
  ["claudemesh once k --resolve done --epoch 1", "claudemesh once --mesh m k --resolve done --epoch 1"],
  ["npx claudemesh inbox", "npx claudemesh inbox --mesh m"],
])("the mesh stands behind the words of the command: %s", (text, named) => {
  expect(nameMesh(text, "m")).toBe(named);
});

test.each([
  "claudemesh daemon logs --mesh other",
  "claudemesh mesh revoke 00ff --mesh other  (by an owner)",
  "claudemesh up is one way; claudemesh mesh join <invite>, claudemesh broker stats and claudemesh completion bash others",
  "claudemesh is up: mesh local",
  "CLAUDEMESH_MESH and claudemesh-mcp",
])("what names a mesh, or takes none, stays: %s", (text) => {
  expect(nameMesh(text, "m")).toBe(text);
});

test("every command that takes --mesh is known to, and no other", async () => {
  const program = await buildProgram(createRecordingShell(), () => true);
  const taking = commandEntries.filter(({ path }) => {
    let command = program;
    for (const word of path.split(" ")) command = command.commands.find((each) => each.name() === word) ?? command;
    return command.options.some(({ long }) => long === "--mesh");
  });
  // `up` makes the mesh that it is given, or goes on with it.
  const expected = taking.map(({ path }) => path).filter((path) => !/^up( |$)/.test(path));
  expect(commandEntries.map(({ path }) => path).filter(takesMesh)).toEqual(expected);
});
