// A verifier that is a program: only how it ends counts, and it never holds a request up for long.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { createExecVerifier } from "./exec-verifier.ts";

const folder = mkdtempSync(join(tmpdir(), "claudemesh-verifier-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let programs = 0;

function program(script: string): string {
  const path = join(folder, `verifier-${++programs}.sh`);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o700);
  return path;
}

const row = { registration_id: "r", target: "für alle" };

describe("a verifier that is a program", () => {
  test("gets the row as one line of JSON on its input, and passes by ending with 0", async () => {
    const seen = join(folder, "seen");
    const path = program(`cat > ${seen}`);
    const verifier = createExecVerifier(path);
    expect(verifier.name).toBe(`exec:${path}`);
    expect(await verifier.verify(row)).toEqual({ type: "passed" });
    expect(readFileSync(seen, "utf8")).toBe(`${JSON.stringify(row)}\n`);
  });

  test("sees no more of the broker's environment than where things are", async () => {
    const seen = join(folder, "environment");
    const secrets = { CLAUDEMESH_ADMIN_TOKEN: "cma_x", PGPASSWORD: "hunter2", CLAUDEMESH_STORE: "postgres://u:p@h/d" };
    for (const [name, value] of Object.entries(secrets)) vi.stubEnv(name, value);
    await createExecVerifier(program(`cat >/dev/null; env > ${seen}`)).verify(row);
    vi.unstubAllEnvs();
    const names = readFileSync(seen, "utf8")
      .trim()
      .split("\n")
      .map((line) => line.split("=")[0]);
    const shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    const allowed = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", ...shell];
    expect(names).toContain("PATH");
    expect(names.filter((name) => !allowed.includes(name ?? ""))).toEqual([]);
  });

  test("fails by any other status, with what it said as the reason", async () => {
    const reason = (script: string) => createExecVerifier(program(script)).verify(row);
    expect(await reason("cat >/dev/null; echo 'not built here' >&2; exit 7")).toEqual({
      type: "failed",
      reason: "not built here",
    });
    expect(await reason("exit 1")).toEqual({ type: "failed", reason: "exit status 1" });
  });

  test("has said nothing when it is not there, is killed, or takes too long", async () => {
    expect(await createExecVerifier(join(folder, "nothing")).verify(row)).toMatchObject({ type: "inconclusive" });
    expect(await createExecVerifier(program("kill -9 $$")).verify(row)).toMatchObject({ type: "inconclusive" });
    expect(await createExecVerifier(program("exec sleep 60"), 100).verify(row)).toEqual({
      type: "inconclusive",
      reason: "it was ended by SIGKILL",
    });
  });

  test("is not waited for beyond its own end, whatever it left running", async () => {
    expect(await createExecVerifier(program("sleep 5 & exit 0")).verify(row)).toEqual({ type: "passed" });
  });

  test("runs for at most four registrations at once", async () => {
    const marks = mkdtempSync(join(folder, "marks-"));
    const path = program(`cat >/dev/null; touch ${marks}/$$; n=$(ls ${marks} | wc -l); rm ${marks}/$$; [ $n -le 4 ]`);
    const verifier = createExecVerifier(path);
    const verdicts = await Promise.all(Array.from({ length: 16 }, () => verifier.verify(row)));
    expect(verdicts.filter(({ type }) => type !== "passed")).toEqual([]);
  });
});
