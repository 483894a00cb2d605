import { describe, expect, it } from "vitest";
import { countFlushCalls } from "./flushes.ts";

describe("flushes in a trace", () => {
  it("are counted once each, also where another thread came in between", () => {
    const trace = [
      "101 fdatasync(21)                   = 0",
      "101 fdatasync(21 <unfinished ...>",
      "102 fsync(9)                        = 0",
      "101 <... fdatasync resumed>)        = 0",
      "101 --- SIGCHLD {si_signo=SIGCHLD} ---",
      "101 +++ exited with 0 +++",
    ].join("\n");
    expect(countFlushCalls(trace)).toBe(3);
  });

  it("are none in an empty trace", () => {
    expect(countFlushCalls("")).toBe(0);
  });
});
