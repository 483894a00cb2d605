// A daemon's log as commands show it: what brokers and members said stands in it, and a terminal may show it.
import { writeFileSync } from "node:fs";
import { ensureMeshDir, meshPaths, writeMeshConfig } from "@claudemesh/client/home";
import { expect, test } from "vitest";
import { makeTemporaryFolder } from "../../../../tests/support/broker-harness.ts";
import { buildProgram } from "../program.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";

test("daemon logs prints nothing that a terminal would act upon, and the same values with --json", async () => {
  const home = makeTemporaryFolder();
  const paths = meshPaths(home, "acme");
  ensureMeshDir(paths);
  const id = "01890000-0000-7000-8000-000000000001";
  writeMeshConfig(paths, { id, name: "acme", broker: "ws://127.0.0.1:1", member_name: "alice" });
  const entry = { time: "2026-01-02T03:04:05Z", level: 40, msg: "refused: \u009b31m\u007f\u202e\u2028evil" };
  writeFileSync(paths.log, `${JSON.stringify(entry)}\n`, { mode: 0o600 });
  const printed = async (...options: string[]) => {
    const shell = createRecordingShell({ home });
    const program = await buildProgram(shell, (each) => each.path === "daemon logs");
    await program.parseAsync(["daemon", "logs", ...options], { from: "user" });
    return shell.printed.join("\n");
  };
  const json = await printed("--json");
  expect(JSON.parse(json)).toEqual(entry);
  for (const text of [json, await printed()]) expect(text).not.toMatch(/[\p{Cc}\u2028-\u202e]/u);
});
