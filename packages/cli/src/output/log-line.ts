// One line of a daemon's log for people: time, level, what happened, and the facts beside it. A line that is no JSON
// object is shown as it stands, because a log that hides a line is worse than an ugly one.
import { neutraliseLine } from "./printable.ts";
import { formatTime } from "./times.ts";

const levels: Readonly<Record<number, string>> = {
  10: "TRACE",
  20: "DEBUG",
  30: "INFO",
  40: "WARN",
  50: "ERROR",
  60: "FATAL",
};

export function formatLogLine(line: string): string {
  const entry = parseEntry(line);
  if (entry === undefined) return neutraliseLine(line);
  // Mesh and process are the same in every line of one daemon's file.
  const { time, level, msg, event, mesh: _mesh, pid: _pid, ...facts } = entry;
  const when = showTime(time);
  const what = [event, msg].filter((part) => typeof part === "string" && part !== "").join(": ");
  const rest = Object.entries(facts).map(([name, value]) => `${name}=${showFact(value)}`);
  const parts = [when, (levels[Number(level)] ?? String(level ?? "")).padEnd(5), what, ...rest];
  return neutraliseLine(parts.filter((part) => part !== "").join(" "));
}

/** A time that is none is shown as it stands. */
function showTime(time: unknown): string {
  if (typeof time !== "string") return "";
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? time : formatTime(ms);
}

function parseEntry(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Of an error its message: the stack is for --json. */
function showFact(value: unknown): string {
  if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  if (typeof value === "object" && value !== null && "message" in value) return JSON.stringify(value.message);
  return JSON.stringify(value) ?? "undefined";
}
