// docs/errors.md and the catalogue list the same codes with the same status and retry class. A page without rows, or
// rows that this test cannot read, fail it.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { errorCatalogue } from "./catalogue.ts";

const header = ["code", "HTTP status", "retry?", "what it means", "what to do next"];

interface Row {
  code: string;
  status: number;
  retryable: boolean;
  meaning: string;
  nextStep: string;
}

/** Every table of the page, each under a heading of its own; anything that looks like a row and is none is an error. */
function readRows(page: string): Row[] {
  const rows: Row[] = [];
  let inTable = false;
  for (const line of page.split("\n")) {
    if (!line.startsWith("|")) {
      inTable = false;
      continue;
    }
    const cells = line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim());
    if (!inTable) {
      expect(cells, `the head of a table: ${line}`).toEqual(header);
      inTable = true;
    } else if (!/^[|\s:-]+$/.test(line)) {
      rows.push(readRow(cells, line));
    }
  }
  return rows;
}

function readRow(cells: readonly string[], line: string): Row {
  expect(cells, line).toHaveLength(header.length);
  const [code = "", status = "", retry = "", meaning = "", nextStep = ""] = cells;
  expect(code, line).toMatch(/^`[a-z0-9_]+`$/);
  expect(status, line).toMatch(/^[45]\d\d$/);
  expect(retry, line).toMatch(/^(yes|no)$/);
  return { code: code.slice(1, -1), status: Number(status), retryable: retry === "yes", meaning, nextStep };
}

const page = readFileSync(new URL("../../../../docs/errors.md", import.meta.url), "utf8");

describe("docs/errors.md", () => {
  it("has rows", () => {
    expect(readRows(page).length).toBeGreaterThan(0);
  });

  it("lists every code of the catalogue once, and no other", () => {
    const listed = readRows(page).map((row) => row.code);
    expect(listed.toSorted()).toEqual(Object.keys(errorCatalogue).toSorted());
  });

  it("gives each code the status and the retry class that it has", () => {
    const inPage = readRows(page).map(({ code, status, retryable }) => [code, { status, retryable }] as const);
    const inCode = Object.entries(errorCatalogue).map(
      ([code, { status, retryable }]) => [code, { status, retryable }] as const,
    );
    expect(Object.fromEntries(inPage)).toEqual(Object.fromEntries(inCode));
  });

  it("says in whole sentences what each code means and what to do next", () => {
    for (const { code, meaning, nextStep } of readRows(page)) {
      expect(meaning, code).toMatch(/^\S.+\.$/);
      expect(nextStep, code).toMatch(/^\S.+\.$/);
    }
  });
});

describe("the reading of the page", () => {
  const head = `| ${header.join(" | ")} |\n|---|---|---|---|---|\n`;

  it("finds no rows where there are none", () => {
    expect(readRows("# Errors\n\nNothing here.\n")).toEqual([]);
    expect(readRows(head)).toEqual([]);
  });

  it.each([
    ["a status that is none", "| `fenced` | 40 | no | A. | B. |"],
    ["a code without its marks", "| fenced | 409 | no | A. | B. |"],
    ["a retry class of its own", "| `fenced` | 409 | maybe | A. | B. |"],
    ["a missing column", "| `fenced` | 409 | no | A. |"],
  ])("fails on a row with %s", (_what, row) => {
    expect(() => readRows(head + row)).toThrow();
  });

  it("fails on a table with another head", () => {
    expect(() => readRows("| code | status |\n|---|---|\n")).toThrow();
  });
});
