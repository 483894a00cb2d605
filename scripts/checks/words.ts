// The words check: what must not stay behind in any text of the repository, in file names and in file contents, and
// what is not plain English (plain-words.ts). The patterns are written so that this file does not match itself.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Check, CheckReport } from "./check-report.ts";
import { findUnplainWords } from "./plain-words.ts";
import { isJavaScript, isText, isTypeScript, listFiles } from "./source-tree.ts";

interface Ban {
  readonly pattern: RegExp;
  readonly reason: string;
  /** All text files unless it says otherwise. */
  readonly only?: (path: string) => boolean;
}

const bans: readonly Ban[] = [
  { pattern: /\b(?:TO[D]O|FIX[M]E|X[X]X|HA[C]K)\b/, reason: "unfinished work belongs in an issue" },
  {
    pattern: /(?<![\w.~$}*-])\/(?:work|root|home\/\w+|Users\/\w+)\/\w/,
    reason: "a path of one machine means nothing on the next",
  },
  {
    pattern: /\b(?:it|test|describe|suite|bench)(?:\.\w+)*\.(?:only|skip|todo|fails)\b\s*[(.]/,
    reason: "a test that does not run, or keeps others from running; skipIf with a stated need is allowed",
    only: (path) => isTypeScript(path) || isJavaScript(path),
  },
  { pattern: /\bdebugger;/, reason: "left over from debugging", only: isTypeScript },
  { pattern: /^(?:<{7}|={7}|>{7})(?: |$)/, reason: "a merge left its marks" },
];

const bannedNames = /(?:^|[-._/])(?:utils?|helpers?|managers?|impl|v2)(?=[-._/]|$)/;

async function run(root: string): Promise<CheckReport> {
  const files = listFiles(root);
  const problems = files
    .filter((path) => bannedNames.test(path))
    .map((path) => `${path}: a name should say what is inside; this one would fit anything`);
  const texts = files.filter((path) => isText(path));
  for (const path of texts) {
    const active = bans.filter(({ only }) => only === undefined || only(path));
    const text = readFileSync(join(root, path), "utf8");
    for (const [index, line] of text.split("\n").entries()) {
      const ban = active.find(({ pattern }) => pattern.test(line));
      if (ban !== undefined) problems.push(`${path}:${index + 1} "${line.trim().slice(0, 80)}": ${ban.reason}`);
    }
    problems.push(...findUnplainWords(path, text));
  }
  return { examined: texts.length, unit: "files", problems };
}

export const wordsCheck: Check = {
  name: "words",
  proves: "no unfinished work, machine path, focused or skipped test, empty name or unplain word stayed behind",
  run,
};
