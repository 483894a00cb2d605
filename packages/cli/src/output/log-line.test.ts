import { describe, expect, it } from "vitest";
import { formatLogLine } from "./log-line.ts";

const line = (facts: object) =>
  JSON.stringify({ level: 30, time: "2030-01-31T12:00:05.123Z", mesh: "acme", pid: 7, ...facts });

describe("a line of the log", () => {
  it("shows when, how grave, what happened and the facts beside it", () => {
    expect(formatLogLine(line({ event: "daemon_started", msg: "the daemon serves", http_port: 4000 }))).toBe(
      "2030-01-31 12:00:05 INFO  daemon_started: the daemon serves http_port=4000",
    );
  });

  it.each([
    [20, "DEBUG"],
    [40, "WARN "],
    [50, "ERROR"],
    [60, "FATAL"],
    [35, "35   "],
  ])("names level %i %s", (level, name) => {
    expect(formatLogLine(line({ level, msg: "x" }))).toBe(`2030-01-31 12:00:05 ${name} x`);
  });

  it("quotes facts that hold spaces, and shows of an error its message", () => {
    const shown = formatLogLine(
      line({ msg: "m", err: { type: "Error", message: "disk full", stack: "at x" }, to: "a b", list: [1] }),
    );
    expect(shown).toBe('2030-01-31 12:00:05 INFO  m err="disk full" to="a b" list=[1]');
  });

  it("is one line without control characters, whatever was logged", () => {
    expect(formatLogLine(line({ msg: "a\u001b[31m\nb" }))).toBe("2030-01-31 12:00:05 INFO  a�[31m⏎b");
  });

  it.each(["not json at all", "[1,2]", '"text"', "{cut"])("that is no object is shown as it stands: %s", (text) => {
    expect(formatLogLine(text)).toBe(text);
  });
});
