// `claudemesh doctor` on a machine where nothing has been set up. What it finds in a mesh that runs is in
// operator-tools.test.ts.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runCli } from "./support/process.ts";

test("the doctor, in a home without a mesh, says how to get one, and a mesh that is not there is not found", async () => {
  const home = mkdtempSync(join(tmpdir(), "cm-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const { code, stdout } = await runCli(["doctor", "--json"], { home });
  expect(code).toBe(1);
  expect(JSON.parse(stdout).checks).toContainEqual(
    expect.objectContaining({ check: "mesh", status: "fail", fix: expect.stringContaining("claudemesh up") }),
  );
  expect((await runCli(["doctor", "--mesh", "nowhere"], { home })).code).toBe(5);
});
