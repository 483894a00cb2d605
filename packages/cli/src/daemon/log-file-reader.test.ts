import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openLog } from "./log-file-reader.ts";

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cm-log-"));
  path = join(folder, "daemon.log");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const numbered = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => `line ${from + n}`);
const asText = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join("");

function open(count: number) {
  const log = openLog(path, count);
  if (log === undefined) throw new Error("there is no log");
  return log;
}

describe("the last lines of a log", () => {
  it("are none where there is no log", () => {
    expect(openLog(path, 10)).toBeUndefined();
  });

  it("are as many as were asked for, oldest first", () => {
    writeFileSync(path, asText(numbered(1, 100)));
    const { lines, follow } = open(3);
    expect(lines).toEqual(numbered(98, 100));
    follow.close();
    expect(open(0).lines).toEqual([]);
  });

  it("go on into the older files, as far as needed and as far as there are any", () => {
    writeFileSync(`${path}.2`, asText(numbered(1, 10)));
    writeFileSync(`${path}.1`, asText(numbered(11, 20)));
    writeFileSync(path, asText(numbered(21, 25)));
    expect(open(8).lines).toEqual(numbered(18, 25));
    expect(open(20).lines).toEqual(numbered(6, 25));
    expect(open(1_000).lines).toEqual(numbered(1, 25));
  });

  it("are whole, also where characters and lines fall across the pieces that are read", () => {
    const lines = Array.from({ length: 2_000 }, (_, n) => `${n} ${"ü".repeat(n % 97)}`);
    writeFileSync(path, asText(lines));
    expect(open(2_000).lines).toEqual(lines);
  });
});

describe("following a log", () => {
  it("gives what comes, once, and a line only when it is whole", () => {
    writeFileSync(path, asText(numbered(1, 3)));
    const { follow } = open(1);
    expect(follow.next()).toEqual([]);
    appendFileSync(path, "line 4\nline");
    expect(follow.next()).toEqual(["line 4"]);
    appendFileSync(path, " 5\n");
    expect(follow.next()).toEqual(["line 5"]);
    follow.close();
  });

  it("loses nothing when the log is rotated", () => {
    writeFileSync(path, asText(numbered(1, 3)));
    const { follow } = open(3);
    appendFileSync(path, asText(["line 4"]));
    renameSync(path, `${path}.1`);
    appendFileSync(`${path}.1`, asText(["line 5"]));
    expect(follow.next()).toEqual(numbered(4, 5));
    writeFileSync(path, asText(["line 6"]));
    appendFileSync(path, asText(["line 7"]));
    expect(follow.next()).toEqual(numbered(6, 7));
    expect(follow.next()).toEqual([]);
    follow.close();
  });
});
