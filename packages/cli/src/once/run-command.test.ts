// A command as an effect: how it ends becomes a result, what it prints goes on and is kept, and what a lost lease does.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { OnceLeaseLost, OnceNotDone } from "@claudemesh/client/once";
import { describe, expect, it, onTestFinished } from "vitest";
import { canBeFound, runCommand } from "./run-command.ts";

const never = new AbortController().signal;
const quiet = { stdout: undefined, stderr: undefined, warn: () => undefined };

describe("a command", () => {
  it("has its exit code and its output as its result, and prints as it runs", async () => {
    const stdout = new PassThrough();
    const result = await runCommand(["sh", "-c", "echo out; echo err >&2; exit 3"], never, { ...quiet, stdout });
    stdout.end();
    expect(result).toEqual({ exit_code: 3, stdout: "out\n", stderr: "err\n" });
    expect(await text(stdout)).toBe("out\n");
  });

  it("that a signal ended has 128 and the signal's number", async () => {
    const result = await runCommand(["sh", "-c", "kill -KILL $$"], never, quiet);
    expect(result).toEqual({ exit_code: 137, signal: "SIGKILL", stdout: "", stderr: "" });
  });

  it("that could not be started has done nothing", async () => {
    await expect(runCommand(["/no/such/program"], never, quiet)).rejects.toBeInstanceOf(OnceNotDone);
  });

  it.each([
    ["settled", 143],
    ["expired", 0],
  ] as const)("whose lease is lost because it %s ends with %i", async (why, exitCode) => {
    const folder = mkdtempSync(join(tmpdir(), "cm-once-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const go = join(folder, "go");
    const lost = new AbortController();
    const stdout = new PassThrough();
    const warnings: string[] = [];
    // It stays until the test lets it end, or a signal ends it.
    const running = runCommand(["sh", "-c", `echo up; while [ ! -e ${go} ]; do sleep 0.02; done`], lost.signal, {
      ...quiet,
      stdout,
      warn: (line) => {
        warnings.push(line);
        if (why === "expired") writeFileSync(go, "");
      },
    });
    await new Promise((resolve) => stdout.once("data", resolve));
    lost.abort(new OnceLeaseLost(why, { key: "k", epoch: 1 }));
    expect(await running).toMatchObject({ exit_code: exitCode });
    expect(warnings).toHaveLength(1);
  });
});

describe("a program", () => {
  it("is found by its path, or on PATH, if it can be run", () => {
    const folder = mkdtempSync(join(tmpdir(), "cm-once-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const program = join(folder, "deploy");
    writeFileSync(program, "#!/bin/sh\n", { mode: 0o600 });
    const found = () => [canBeFound("deploy", `/nowhere:${folder}`), canBeFound(program, undefined)];
    if (process.getuid?.() !== 0) expect(found()).toEqual([false, false]);
    chmodSync(program, 0o700);
    expect(found()).toEqual([true, true]);
    expect(canBeFound("deploy", "/nowhere")).toBe(false);
    expect(canBeFound("deploy", undefined)).toBe(false);
  });
});
