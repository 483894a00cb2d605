// What every command owes its user, checked by walking the whole table.
import { readdirSync, readFileSync } from "node:fs";
import { type Command, CommanderError } from "commander";
import { beforeAll, describe, expect, it } from "vitest";
import type { Commands } from "./command.ts";
import { commandEntries, commandGroups, helpGroups } from "./command-table.ts";
import { exitCodeMeanings, exitCodes } from "./exit-codes.ts";
import { buildProgram, findEntry } from "./program.ts";
import { createRecordingShell } from "./testing/recording-shell.ts";

const paths = commandEntries.map(({ path }) => path);
let whole: Command;

beforeAll(async () => {
  whole = await buildProgram(createRecordingShell(), () => true);
});

function commandAt(path: string, program = whole): Command {
  return path.split(" ").reduce((parent: Command, name) => {
    const found = parent.commands.find((each) => each.name() === name);
    if (found === undefined) throw new Error(`there is no ${path}`);
    return found;
  }, program);
}

async function helpOf(path: string): Promise<string> {
  const shell = createRecordingShell();
  const program = await buildProgram(shell, (entry) => entry.path === path);
  await expect(program.parseAsync([...path.split(" "), "--help"], { from: "user" })).rejects.toThrow(CommanderError);
  return shell.printed.join("\n");
}

describe("the exit codes", () => {
  it("are each explained once, in help and in the documentation", () => {
    const codes = exitCodeMeanings.map(([code]) => code);
    expect(codes).toEqual(Object.values(exitCodes));
    const page = readFileSync(new URL("../../../docs/exit-codes.md", import.meta.url), "utf8");
    const rows = [...page.matchAll(/^\| (\d) \| ([^|]+) \|/gm)].map(([, code, meaning]) => [Number(code), meaning]);
    expect(rows).toEqual(exitCodeMeanings);
  });
});

describe("the command table", () => {
  it("names each command once, and a group for every word that stands before others", () => {
    expect(new Set(paths).size).toBe(paths.length);
    expect(paths.length).toBeGreaterThan(20);
    const before = paths.filter((path) => path.includes(" ")).map((path) => path.slice(0, path.lastIndexOf(" ")));
    const unexplained = before.filter((path) => commandGroups[path] === undefined && !paths.includes(path));
    expect(unexplained).toEqual([]);
    const unused = Object.keys(commandGroups).filter((group) => !before.includes(group));
    expect(unused).toEqual([]);
  });

  it("has every command that a file of commands defines, and none of them twice", async () => {
    const files = readdirSync(new URL("commands/", import.meta.url)).filter((name) => /^[a-z-]+\.ts$/.test(name));
    const defined = await Promise.all(
      files.map(async (name) => {
        const { commands } = (await import(new URL(`commands/${name}`, import.meta.url).href)) as {
          commands: Commands;
        };
        return Object.keys(commands);
      }),
    );
    expect(defined.flat().toSorted()).toEqual(paths.toSorted());
  });

  it("finds a command by its first words, the longest first, and behind help", () => {
    expect(findEntry(["mesh", "token", "list", "--json"])?.path).toBe("mesh token list");
    expect(findEntry(["mesh", "token", "--label", "list"])?.path).toBe("mesh token");
    expect(findEntry(["send", "@self", "daemon up"])?.path).toBe("send");
    expect(findEntry(["help", "daemon", "up"])?.path).toBe("daemon up");
    expect(findEntry(["daemon"])).toBeUndefined();
    expect(findEntry([])).toBeUndefined();
  });

  it("loads the file of the command that was asked for, and no other", async () => {
    const program = await buildProgram(createRecordingShell(), (entry) => entry.path === "mesh list");
    const withOptions = paths.filter((path) => commandAt(path, program).options.length > 0);
    expect(withOptions).toEqual(["mesh list"]);
  });
});

describe.each(paths)("claudemesh %s", (path) => {
  it("has --help with a summary, its options and examples that run this very command", async () => {
    const help = await helpOf(path);
    expect(help).toContain(`Usage: claudemesh ${path}`);
    // Further paragraphs may follow.
    const [, after = ""] = help.split("\nExamples:\n");
    const [examples = ""] = after.split("\n\n");
    const lines = examples.split("\n").filter((line) => line !== "");
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/^ {2}\$ /);
    expect(examples).toContain(`claudemesh ${path}`);
  });

  it("has --json, and a description for every option and argument", () => {
    const command = commandAt(path);
    expect(command.options.map((option) => option.long)).toContain("--json");
    for (const { flags, description } of command.options) expect(description, flags).not.toBe("");
    for (const argument of command.registeredArguments) expect(argument.description, argument.name()).not.toBe("");
  });

  it("refuses an option that it does not have", async () => {
    const shell = createRecordingShell();
    const program = await buildProgram(shell, (entry) => entry.path === path);
    const mandatory = commandAt(path).options.filter((option) => option.mandatory);
    const needed = mandatory.flatMap(({ long }) => [long ?? "", "1"]);
    const failure = program.parseAsync([...path.split(" "), ...needed, "--frobnicate"], { from: "user" });
    await expect(failure).rejects.toMatchObject({ code: "commander.unknownOption" });
    expect(shell.complaints.join("\n")).toContain("--help");
    expect(shell.printed).toEqual([]);
  });
});

describe("help", () => {
  it("shows every command under one heading, in the order of the headings, and the exit codes below", async () => {
    const grouped = helpGroups.flatMap(({ words }) => words);
    expect(new Set(grouped).size).toBe(grouped.length);
    expect(new Set(grouped)).toEqual(new Set(paths.map((path) => path.split(" ")[0])));
    const shell = createRecordingShell();
    const program = await buildProgram(shell, () => false);
    await expect(program.parseAsync(["--help"], { from: "user" })).rejects.toThrow(CommanderError);
    const lines = shell.printed.join("\n").split("\n");
    const headings = lines.filter((line) => /^[A-Z][a-z ]+:$/.test(line));
    expect(headings).toEqual(["Options:", ...helpGroups.map(({ heading }) => heading), "Exit codes:"]);
    const shown = lines.flatMap((line) => /^ {2}([a-z]+)(?: \[| {2,}|$)/.exec(line)?.[1] ?? []);
    expect(shown).toEqual(["up", "help", ...grouped.slice(1)]);
    for (const [code, meaning] of exitCodeMeanings) expect(lines).toContain(`  ${code}  ${meaning}`);
  });

  it("has its headings in bold where colours are wanted, and nothing of other people", async () => {
    const shell = createRecordingShell({ colours: true });
    const program = await buildProgram(shell, () => false);
    await expect(program.parseAsync(["--help"], { from: "user" })).rejects.toThrow(CommanderError);
    expect(shell.printed.join("\n")).toContain("\u001b[1mMessages:\u001b[22m");
  });

  it("fits a narrow terminal and holds no escape sequence", async () => {
    const shell = createRecordingShell({ columns: 60 });
    const program = await buildProgram(shell, () => false);
    await expect(program.parseAsync(["--help"], { from: "user" })).rejects.toThrow(CommanderError);
    const lines = shell.printed.join("\n").split("\n");
    expect(lines.length).toBeGreaterThan(10);
    expect(lines.filter((line) => line.length > 60)).toEqual([]);
    expect(shell.printed.join("")).not.toContain("\u001b");
  });
});
