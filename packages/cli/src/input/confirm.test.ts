// What cannot be undone is asked about at a terminal, and nowhere else: scripts call these commands without --yes.
import { ensureMeshDir, meshPaths, writeMeshConfig } from "@claudemesh/client/home";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeTemporaryFolder } from "../../../../tests/support/broker-harness.ts";
import { buildProgram, findEntry } from "../program.ts";
import { createRecordingShell } from "../testing/recording-shell.ts";

let home: string;

beforeEach(() => {
  home = makeTemporaryFolder();
  const paths = meshPaths(home, "acme");
  ensureMeshDir(paths);
  const id = "01890000-0000-7000-8000-000000000001";
  writeMeshConfig(paths, { id, name: "acme", broker: "ws://127.0.0.1:1", member_name: "alice" });
});

afterEach(() => {
  process.exitCode = undefined;
});

async function runHere(words: readonly string[], answer: string | undefined, isTerminal: boolean) {
  const questions: string[] = [];
  const ask = async (question: string) => {
    questions.push(question);
    return answer;
  };
  const shell = createRecordingShell({ home, ask: isTerminal ? ask : undefined });
  const program = await buildProgram(shell, (entry) => entry === findEntry(words));
  process.exitCode = undefined;
  await program.parseAsync([...words], { from: "user" });
  return { code: process.exitCode ?? 0, err: shell.complaints.join("\n"), questions };
}

const id = "0198c0de-0000-7000-8000-000000000000";

describe.each([
  ["mesh revoke bob"],
  [`mesh invite revoke ${id}`],
  [`mesh token revoke ${id}`],
  ["webhook delete ci"],
  ["space delete plan task:1"],
  ["space branch plan draft --delete"],
  ["registrar revoke release-42"],
  ["registrar compensate release-42 --approval a --nonce n"],
  ["once deploy --resolve done --epoch 1"],
  ["daemon outbox prune --older-than-days 7"],
  ["daemon remint --invite cmi1.x"],
  ["broker sweep --broker http://127.0.0.1:1 --admin-token-file /nowhere/token"],
])("claudemesh %s", (line) => {
  const words = line.split(" ");

  test("asks at a terminal, and does nothing without a yes", async () => {
    for (const answer of ["n", "", undefined, "yesterday"]) {
      const { code, err, questions } = await runHere(words, answer, true);
      expect({ code, asked: questions.length }).toEqual({ code: 1, asked: 1 });
      expect(err).toContain("Nothing was changed");
      expect(questions[0]).toMatch(/cannot be undone\. Go on\? \[y\/N\] $/);
    }
  });

  // This home has no keys, so that going on ends with another failure.
  test("goes on with a yes, with --yes, and where there is no terminal", async () => {
    const answered = await runHere(words, "y", true);
    expect(answered.err).not.toContain("Nothing was changed");
    const unasked = [await runHere([...words, "--yes"], "n", true), await runHere(words, "n", false)];
    for (const { code, err, questions } of unasked) {
      expect(questions).toEqual([]);
      expect(code).not.toBe(0);
      expect(err).not.toContain("Nothing was changed");
    }
  });
});

test("what is asked holds no escape sequence of a name", async () => {
  const { questions } = await runHere(["mesh", "token", "revoke", "\u001b[31mci"], "n", true);
  expect(questions[0]).not.toContain("\u001b");
});
