// Documents that name files must not rot: every path and every relative link in them leads somewhere.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = new URL("../", import.meta.url);
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...readdirSync(new URL("docs/", root)).flatMap((name) => (name.endsWith(".md") ? [`docs/${name}`] : [])),
  ...readdirSync(new URL("docs/decisions/", root)).map((name) => `docs/decisions/${name}`),
  "examples/README.md",
];
const textOf = (page: string) => readFileSync(new URL(page, root), "utf8");
const isThere = (path: string, base: URL) => existsSync(fileURLToPath(new URL(path, base)));

describe("the documents", () => {
  test.for(pages)("%s links only to what exists", (page) => {
    const links = [...textOf(page).matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)].map(
      ([, target = ""]) => target,
    );
    expect(links.filter((target) => !isThere(target, new URL(page, root)))).toEqual([]);
  });

  test.for(pages)("%s names only files and folders that exist", (page) => {
    const named = [
      ...textOf(page).matchAll(/`((?:packages|tests|scripts|docs|bench|examples)(?:\/[A-Za-z0-9._-]+)*)`/g),
    ];
    expect(named.map(([, path = ""]) => path).filter((path) => !isThere(path, root))).toEqual([]);
  });

  test("each call with a body in them says that it is JSON, which servers insist on", () => {
    const calls = pages.flatMap((page) => textOf(page).match(/^curl .* -d .*$/gm) ?? []);
    expect(calls.length).toBeGreaterThan(2);
    expect(calls.filter((call) => !/\$JSON|application\/json/.test(call))).toEqual([]);
  });

  test("the invariants are numbered without a gap, and each names its source and its test", () => {
    const page = textOf("docs/invariants.md");
    for (const [area, atLeast] of Object.entries({ KEY: 4, MSG: 23, REG: 13, SPC: 16 })) {
      const rows = [...page.matchAll(new RegExp(`^\\| ${area}-(\\d+) \\|(.*)\\|$`, "gm"))];
      expect(rows.map(([, number]) => Number(number))).toEqual(rows.map((_, index) => index + 1));
      expect(rows.length).toBeGreaterThanOrEqual(atLeast);
      for (const [line] of rows) expect(line.match(/`[^`]+\.ts`/g)?.length ?? 0, line).toBeGreaterThanOrEqual(2);
    }
  });

  test("every promise rests on invariants that exist, and names a test that tries to break it and a figure", () => {
    const promises = readPromises(textOf("docs/guarantees.md"));
    expect(promises.length).toBeGreaterThan(15);
    const known = new Set(idsIn(textOf("docs/invariants.md")));
    for (const { line, rules, tests, figure } of promises) {
      expect(
        idsIn(rules).filter((id) => !known.has(id)),
        line,
      ).toEqual([]);
      expect(tests, line).toMatch(/`(?:packages|tests)\/[^`]+\.ts`/);
      expect(figure, line).not.toBe("");
    }
  });

  test("every invariant stands behind a promise", () => {
    const promised = new Set(readPromises(textOf("docs/guarantees.md")).flatMap(({ rules }) => idsIn(rules)));
    const invariants = [...textOf("docs/invariants.md").matchAll(/^\| ((?:KEY|MSG|SPC|REG)-\d+) \|/gm)].map(
      ([, id]) => id,
    );
    expect(invariants.filter((id) => id !== undefined && !promised.has(id))).toEqual([]);
  });

  test("every move of an attacker has a verdict, and a test of that name beside it", () => {
    const moves = readMoves(textOf("docs/threat-model.md"));
    expect(moves.length).toBeGreaterThan(60);
    for (const { line, becomes, tests } of moves) {
      expect(becomes, line).toMatch(/^ (?:prevented|noticed|possible)/);
      expect(tests, line).not.toEqual([]);
      for (const { file, title } of tests) expect(titlesIn(textOf(file)), `${file}: ${title}`).toContain(title);
    }
  });

  test("every test of the four actors stands beside a move", () => {
    const named = new Set(
      readMoves(textOf("docs/threat-model.md")).flatMap(({ tests }) => tests.map(({ title }) => title)),
    );
    const actors = readdirSync(new URL("tests/", root)).filter((name) => /^(?:malicious-|port-thief)/.test(name));
    expect(actors).toHaveLength(4);
    for (const file of actors)
      expect(titlesIn(textOf(`tests/${file}`)).filter((title) => !named.has(title))).toEqual([]);
  });

  test("ARCHITECTURE.md has a row for every package", () => {
    const page = textOf("ARCHITECTURE.md");
    const packages = readdirSync(new URL("packages/", root));
    expect(packages.filter((name) => !page.includes(`\`packages/${name}\``))).toEqual([]);
  });
});

type NamedTest = { readonly file: string; readonly title: string };
type Move = { readonly line: string; readonly becomes: string; readonly tests: readonly NamedTest[] };

/** The rows of the actors' tables. A title without a file before it is in the one that its section names. */
function readMoves(page: string): Move[] {
  return page.split(/^## /m).flatMap((section) => {
    const [, sectionFile] = /Tests: `([^`]+)`/.exec(section) ?? [];
    if (sectionFile === undefined) return [];
    return section.split("\n").flatMap((line) => {
      const [move, becomes = "", , cell = ""] = line.split("|").slice(1, -1);
      if (move === undefined || /^-+$|^ move $/.test(move)) return [];
      let file = sectionFile;
      const tests: NamedTest[] = [];
      for (const [, path, title] of cell.matchAll(/`([^`]+)`|"([^"]+)"/g)) {
        if (path !== undefined) file = path;
        else if (title !== undefined) tests.push({ file, title });
      }
      return [{ line, becomes, tests }];
    });
  });
}

/** Of the tests of a file, as they are written there: a placeholder stands for what a table fills in. */
function titlesIn(source: string): string[] {
  const calls = source.matchAll(/^ *(?:(?:test|it)\b.*|\].*)\(\s*"([^"]+)",\s*(?:async )?\(/gm);
  return [...calls].map(([, title = ""]) => title);
}

type Promised = { readonly line: string; readonly rules: string; readonly tests: string; readonly figure: string };

/** The rows of the tables, without their heads. */
function readPromises(page: string): Promised[] {
  return page.split("\n").flatMap((line) => {
    const [promise, rules, tests, figure] = line.split("|").slice(1, -1);
    if (promise === undefined || rules === undefined || /^-+$|^ promise $/.test(promise)) return [];
    return [{ line, rules, tests: tests ?? "", figure: (figure ?? "").trim() }];
  });
}

/** `SPC-1, SPC-3 to SPC-5` names four. */
function idsIn(text: string): string[] {
  return [...text.matchAll(/(KEY|MSG|SPC|REG)-(\d+)(?: to \1-(\d+))?/g)].flatMap(([, area, first, last = first]) =>
    Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => `${area}-${Number(first) + at}`),
  );
}
