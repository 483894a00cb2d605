// What the process's own streams are given: complaints made safe for a terminal, and a width only where there is one.
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { createShell } from "./shell.ts";

test("what is said on standard error moves no cursor and turns no text round, wherever its words come from", () => {
  const stderr = new PassThrough({ encoding: "utf8" });
  const shell = createShell(Object.create(process, { stderr: { value: stderr } }) as NodeJS.Process);
  shell.err("the daemon stopped: \u001b[2J\u009b31m\u202eevil\nnext line");
  expect(stderr.read()).toBe("the daemon stopped: �[2J�31m�evil\nnext line\n");
});

test("a terminal that does not know its width is none that anything is cut for", () => {
  const columnsOf = (stdout: object) =>
    createShell({ env: {}, stdout: { on: () => undefined, ...stdout } } as unknown as NodeJS.Process).columns;
  expect(columnsOf({ isTTY: true, columns: 0 })).toBeUndefined();
  expect(columnsOf({ isTTY: true, columns: 80 })).toBe(80);
  expect(columnsOf({ isTTY: false })).toBeUndefined();
});
