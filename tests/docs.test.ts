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

  test("whoever copies a call with a body from them says that it is JSON, which servers insist on", () => {
    const calls = pages.flatMap((page) => textOf(page).match(/^curl .* -d .*$/gm) ?? []);
    expect(calls.length).toBeGreaterThan(2);
    expect(calls.filter((call) => !/\$JSON|application\/json/.test(call))).toEqual([]);
  });

  test("the invariants are numbered without a gap, and each names its place and its test", () => {
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

  test("ARCHITECTURE.md has a row for every package", () => {
    const page = textOf("ARCHITECTURE.md");
    const packages = readdirSync(new URL("packages/", root));
    expect(packages.filter((name) => !page.includes(`\`packages/${name}\``))).toEqual([]);
  });
});

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
