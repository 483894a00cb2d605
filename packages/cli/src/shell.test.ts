// The one way that complaints leave by: made safe for a terminal, whoever worded them.
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { createShell } from "./shell.ts";

test("what is said on standard error moves no cursor and turns no text round, whoever worded it", () => {
  const stderr = new PassThrough({ encoding: "utf8" });
  const shell = createShell(Object.create(process, { stderr: { value: stderr } }) as NodeJS.Process);
  shell.err("the daemon stopped: \u001b[2J\u009b31m\u202eevil\nnext line");
  expect(stderr.read()).toBe("the daemon stopped: �[2J�31m�evil\nnext line\n");
});
