// What a command for operators cannot make sense of is wrong usage: exit code 2, before a broker or a user is asked.
import { afterEach, describe, expect, test } from "vitest";
import { makeTemporaryFolder } from "../../../../tests/support/broker-harness.ts";
import { buildProgram } from "../program.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";

afterEach(() => {
  process.exitCode = undefined;
});

const broker = ["--broker", "http://127.0.0.1:1"];

describe("wrong usage", () => {
  test.each([
    ["broker check", ["--store", "sqlite:x.db", ...broker], "not both"],
    ["broker sweep", ["--store", "sqlite:x.db", ...broker], "not both"],
    ["broker check", ["--admin-token-file", "tok"], "--broker"],
    ["broker sweep", ["--message-retention-days", "30", ...broker], "its own settings"],
    ["broker check", broker, "--admin-token-file"],
    ["mesh create", ["acme", ...broker], "--admin-token-file"],
  ])("of %s %j ends with 2 and says what would do", async (path, args, words) => {
    const shell = createRecordingShell({ home: makeTemporaryFolder() });
    const program = await buildProgram(shell, (entry) => entry.path === path);
    await program.parseAsync([...path.split(" "), ...args, "--json"], { from: "user" });
    expect(process.exitCode).toBe(2);
    expect(JSON.parse(shell.printed.join(""))).toMatchObject({ error: "wrong_usage", retryable: false });
    expect(shell.complaints.join("\n")).toContain(words);
  });
});
