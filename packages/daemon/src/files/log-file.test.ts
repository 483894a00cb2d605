import {
  closeSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { describe, expect, it, onTestFinished } from "vitest";
import { openLogFile } from "./log-file.ts";

function temporaryLog(): { folder: string; path: string } {
  const folder = mkdtempSync(join(tmpdir(), "cm-log-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { folder, path: join(folder, "daemon.log") };
}

describe("daemon.log", () => {
  it("stays within its bound: the current file and two older ones, oldest lines gone first", () => {
    const { folder, path } = temporaryLog();
    const log = openLogFile({ path, maxBytes: 1_000, keep: 2 });
    for (let line = 0; line < 500; line++) log.write(`${String(line).padStart(9, "0")}\n`);
    log.close();
    expect(readdirSync(folder).sort()).toEqual(["daemon.log", "daemon.log.1", "daemon.log.2"]);
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).size).toBeLessThanOrEqual(1_000);
    const text = ["daemon.log.2", "daemon.log.1", "daemon.log"].map((name) => readFileSync(join(folder, name), "utf8"));
    const lines = text.join("").trim().split("\n").map(Number);
    expect(lines.at(-1)).toBe(499);
    expect(lines).toEqual(lines.map((_, index) => (lines[0] ?? 0) + index));
  });

  it("goes on where an earlier process ended", () => {
    const { path } = temporaryLog();
    for (const line of ["one\n", "two\n"]) {
      const log = openLogFile({ path });
      log.write(line);
      log.close();
      log.write("after the end\n");
    }
    expect(readFileSync(path, "utf8")).toBe("one\ntwo\n");
  });

  it("that cannot be turned over stays open, so that no line ends up in another file, and goes on when it can be", () => {
    const { folder, path } = temporaryLog();
    const inTheWay = `${path}.1`;
    const log = openLogFile({ path, maxBytes: 20, keep: 1 });
    log.write("12345678901234567\n");
    mkdirSync(join(inTheWay, "full"), { recursive: true });
    log.write("lost\n");
    // Files that are opened now get the lowest numbers that are free.
    const others = ["a", "b"].map((name) => openSync(join(folder, name), "w"));
    log.write("lost too\n");
    for (const other of others) expect(fstatSync(other).size).toBe(0);
    rmSync(inTheWay, { recursive: true });
    log.write("after\n");
    log.close();
    expect(readFileSync(path, "utf8")).toBe("after\n");
    expect(readFileSync(inTheWay, "utf8")).toContain('"lines":2');
    for (const other of others) closeSync(other);
    expect(readdirSync(folder).sort()).toEqual(["a", "b", "daemon.log", "daemon.log.1"]);
  });

  it("is readable by its owner alone, whatever the umask", () => {
    const { folder, path } = temporaryLog();
    const before = process.umask(0);
    onTestFinished(() => {
      process.umask(before);
    });
    const log = openLogFile({ path, maxBytes: 10, keep: 1 });
    for (let line = 0; line < 5; line++) log.write("12345678\n");
    log.close();
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  });
});
