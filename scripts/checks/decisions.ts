// The decisions check: every file in docs/decisions has one shape, stands in the index and is named by a file that it
// explains, and whatever the repository says of decisions and of the tuning log leads somewhere.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Check, CheckReport } from "./check-report.ts";
import { isText, listFiles } from "./source-tree.ts";

interface Decision {
  readonly number: string;
  readonly path: string;
  readonly name: string;
  readonly title: string;
  readonly status: string;
  readonly headings: readonly string[];
}

interface IndexRow {
  readonly number: string;
  readonly name: string;
  readonly title: string;
  readonly status: string;
  readonly explains: readonly string[];
}

const folder = "docs/decisions";
const index = `${folder}/README.md`;
const tuningLog = "docs/tuning-log.md";
const shape = "Context, Decision, Consequences";

/** A path as in a header comment, a link from another page, or a mention in a sentence. */
const citation = /\bdecisions\/(\d{4})\b|\]\((\d{4})-[a-z]|\bdecision (\d{4})\b/gi;
/** From anywhere, or within the log itself. */
const anchor = /tuning-log\.md#([\w-]+)/g;
const ownAnchor = /\]\(#([\w-]+)\)/g;

function readDecision(root: string, path: string): Decision {
  const text = readFileSync(join(root, path), "utf8");
  const name = path.slice(folder.length + 1);
  const [, title = ""] = /^# (.*)/.exec(text) ?? [];
  const [, status = ""] = /^\*\*Status:\*\* (.*)$/m.exec(text) ?? [];
  const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, heading = ""]) => heading);
  return { number: name.slice(0, 4), path, name, title, status, headings };
}

function judgeShape({ number, path, name, title, status, headings }: Decision, numbers: ReadonlySet<string>): string[] {
  const problems: string[] = [];
  if (!/^\d{4}-[a-z0-9-]+\.md$/.test(name)) problems.push("is not named like 0135-a-few-words.md");
  if (!title.startsWith(`${number} `) || !/^\d{4} [A-Z`].*[^.]$/.test(title)) {
    problems.push(`does not begin with "# ${number} " and a sentence without a full stop`);
  }
  const [, changedBy] = /^(?:superseded|amended) by (\d{4})$/.exec(status) ?? [];
  if (status !== "accepted" && changedBy === undefined) {
    problems.push(`has the status "${status}", not "accepted", "amended by NNNN" or "superseded by NNNN"`);
  }
  if (changedBy !== undefined && !numbers.has(changedBy))
    problems.push(`has a status that names ${changedBy}, which is not there`);
  if (headings.join(", ") !== shape) problems.push(`does not have exactly the headings ${shape}`);
  return problems.map((problem) => `${path} ${problem}`);
}

function readIndex(root: string): IndexRow[] {
  if (!existsSync(join(root, index))) return [];
  const rows = readFileSync(join(root, index), "utf8").matchAll(
    /^\| \[(\d{4})\]\((.*?)\) \| (.*) \| (.*) \| (.*) \|$/gm,
  );
  return [...rows].map(([, number = "", name = "", title = "", status = "", explained = ""]) => {
    const explains = [...explained.matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path);
    return { number, name, title: `${number} ${title}`, status, explains };
  });
}

function judgeIndex(
  decisions: readonly Decision[],
  rows: readonly IndexRow[],
  citedBy: ReadonlyMap<string, ReadonlySet<string>>,
): string[] {
  const problems: string[] = [];
  for (const { path, name, title, status } of decisions) {
    const row = rows.find((each) => each.name === name);
    if (row === undefined) problems.push(`${path} has no row in ${index}`);
    else if (row.title !== title || row.status !== status) {
      problems.push(`${path} has another title or status than its row in ${index}`);
    }
  }
  for (const { number, name, explains } of rows) {
    if (!decisions.some((each) => each.name === name))
      problems.push(`${index} has a row for ${name}, which is not there`);
    for (const path of explains) {
      if (citedBy.get(number)?.has(path) !== true) {
        problems.push(`${path} does not name decision ${number}, which explains it; add "Why: ${folder}/${number}."`);
      }
    }
  }
  return problems;
}

/** number → the files outside docs/decisions that name it; and what is named without being there. */
function followMentions(root: string, files: readonly string[], numbers: ReadonlySet<string>) {
  const citedBy = new Map<string, Set<string>>();
  const problems: string[] = [];
  const anchors = anchorsOf(root);
  for (const path of files) {
    const text = readFileSync(join(root, path), "utf8");
    for (const [mention, ...found] of text.matchAll(citation)) {
      const number = found.find((each) => each !== undefined) ?? "";
      if (!numbers.has(number)) problems.push(`${path} names a decision that is not there: "${mention}"`);
      if (!path.startsWith(`${folder}/`)) citedBy.set(number, (citedBy.get(number) ?? new Set()).add(path));
    }
    for (const [mention, name = ""] of text.matchAll(path === tuningLog ? ownAnchor : anchor)) {
      if (!anchors.has(name)) problems.push(`${path} names a section that is not there: "${mention}"`);
    }
  }
  return { citedBy, problems };
}

/** As GitHub makes them of headings. */
function anchorsOf(root: string): Set<string> {
  if (!existsSync(join(root, tuningLog))) return new Set();
  const headings = readFileSync(join(root, tuningLog), "utf8").matchAll(/^#+ (.*)$/gm);
  return new Set(
    [...headings].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}

async function run(root: string): Promise<CheckReport> {
  const files = listFiles(root).filter((path) => isText(path));
  const decisions = files
    .filter((path) => path.startsWith(`${folder}/`) && path !== index)
    .map((path) => readDecision(root, path));
  const numbers = new Set(decisions.map(({ number }) => number));
  const { citedBy, problems } = followMentions(root, files, numbers);
  for (const [at, decision] of decisions.entries()) {
    problems.push(...judgeShape(decision, numbers));
    if (decisions.findIndex(({ number }) => number === decision.number) !== at) {
      problems.push(`${decision.path} has a number that another decision has`);
    }
    if (!citedBy.has(decision.number)) {
      problems.push(
        `${decision.path} is named by no file; add "Why: ${folder}/${decision.number}." to what it explains`,
      );
    }
  }
  problems.push(...judgeIndex(decisions, readIndex(root), citedBy));
  return { examined: decisions.length, unit: "decisions", problems };
}

export const decisionsCheck: Check = {
  name: "decisions",
  proves:
    "every decision has its shape, a status, a row in the index and a file that names it, and no mention is stale",
  run,
};
