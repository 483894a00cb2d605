// The scripts as their shells read them: bash is asked for completions; zsh and fish check the syntax where they are
// installed. What is offered must be what commander knows.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandEntries } from "../command-table.ts";
import { buildProgram } from "../program.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";
import { bashCompletion } from "./bash-completion.ts";
import { type CompletedCommand, readCommands } from "./completion-model.ts";
import { fishCompletion } from "./fish-completion.ts";
import { zshCompletion } from "./zsh-completion.ts";

let folder = "";
let commands: readonly CompletedCommand[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "cm-completion-"));
  commands = readCommands(await buildProgram(createRecordingShell(), () => true));
  for (const mesh of ["acme", "beta"]) {
    mkdirSync(join(folder, "home", "daemon", mesh), { recursive: true });
    writeFileSync(join(folder, "home", "daemon", mesh, "config.toml"), "");
  }
  mkdirSync(join(folder, "home", "daemon", "half-made"));
  writeFileSync(join(folder, "a file.toml"), "");
  writeFileSync(join(folder, "completion.bash"), bashCompletion(commands));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the model", () => {
  it("has every command of the table", () => {
    const known = commands.map(({ path }) => path.trim());
    expect(commandEntries.map(({ path }) => path).filter((path) => !known.includes(path))).toEqual([]);
  });

  it("has of every command the options that it takes, and whether they take a value", () => {
    const send = commands.find(({ path }) => path === " send");
    expect(Object.fromEntries(send?.options.map(({ flag, values }) => [flag, values]) ?? [])).toEqual({
      "--mesh": { kind: "meshes" },
      "--json": undefined,
      "--id": { kind: "any" },
      "--priority": { kind: "words", words: ["now", "next", "low"] },
      "--reply-to": { kind: "any" },
      "--meta": { kind: "any" },
      "--wait": { kind: "words", words: ["stored", "delivered"] },
      "--timeout": { kind: "any" },
      "--batch": { kind: "files" },
      "--help": undefined,
    });
    expect(commands.find(({ path }) => path === " completion")?.argumentWords).toEqual(["bash", "zsh", "fish"]);
  });
});

describe.runIf(spawnSync("bash", ["--version"]).status === 0)("bash", () => {
  /** What is offered when Tab is pressed at the end of these words; the last one is what has been typed of it. */
  function complete(...words: readonly string[]): string[] {
    const script = `
      source "$1"; shift
      COMP_WORDS=(claudemesh "$@"); COMP_CWORD=$#
      _claudemesh claudemesh
      for reply in "\${COMPREPLY[@]}"; do printf '%s\\n' "$reply"; done`;
    const run = spawnSync("bash", ["--norc", "-uc", script, "bash", join(folder, "completion.bash"), ...words], {
      encoding: "utf8",
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: folder, CLAUDEMESH_HOME: join(folder, "home") },
    });
    expect(run.stderr).toBe("");
    return run.stdout.split("\n").filter((line) => line !== "");
  }

  it("completes commands and subcommands", () => {
    expect(complete("se")).toEqual(["send"]);
    expect(complete("daemon", "rest")).toEqual(["restart"]);
    expect(complete("daemon", "outbox", "")).toEqual(expect.arrayContaining(["list", "inspect"]));
    for (const kind of ["token", "invite"]) {
      expect(complete("mesh", kind, "")).toEqual(expect.arrayContaining(["list", "revoke"]));
    }
    const known = commandEntries.map(({ path }) => path.split(" ")[0]);
    expect(complete("")).toEqual(expect.arrayContaining(known));
  });

  it("completes the options of the command on the line, and of no other", () => {
    expect(complete("daemon", "outbox", "list", "--fa")).toEqual(["--failed"]);
    expect(complete("send", "@bob", "hello", "--pr")).toEqual(["--priority"]);
    expect(complete("daemon", "down", "--")).toEqual(["--mesh", "--json", "--help"]);
    expect(complete("daemon", "down", "")).toEqual(["--mesh", "--json", "--help"]);
    expect(complete("mesh", "list", "--fa")).toEqual([]);
  });

  it("completes what an option or an argument takes", () => {
    expect(complete("send", "--priority", "n")).toEqual(["now", "next"]);
    expect(complete("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(complete("daemon", "down", "--mesh", "")).toEqual(["acme", "beta"]);
    expect(complete("broker", "serve", "--config", "a")).toEqual(["a file.toml"]);
    expect(complete("send", "--id", "")).toEqual([]);
  });

  it("takes the value of an option for no command", () => {
    expect(complete("mesh", "token", "--label", "list", "--la")).toEqual(["--label"]);
    expect(complete("send", "--id", "daemon", "--pr")).toEqual(["--priority"]);
  });
});

describe.each([
  ["zsh", zshCompletion],
  ["fish", fishCompletion],
] as const)("%s", (shell, write) => {
  const isHere = spawnSync(shell, ["--version"]).status === 0;
  if (!isHere) process.stdout.write(`skipped: ${shell} is not installed, so that its script's syntax is not checked\n`);

  it.runIf(isHere)("reads its script", () => {
    const path = join(folder, `completion.${shell}`);
    writeFileSync(path, write(commands));
    const { status, stderr } = spawnSync(shell, ["-n", path], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  it("has a script that knows every subcommand and option", () => {
    const script = write(commands);
    for (const { path, subcommands, options } of commands) {
      for (const { name } of subcommands) expect(script, `${path} ${name}`).toContain(name);
      for (const { flag } of options) expect(script, `${path} ${flag}`).toContain(flag.slice(2));
    }
    expect(script).not.toContain("undefined");
  });
});
