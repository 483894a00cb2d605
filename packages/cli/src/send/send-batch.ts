// `claudemesh send --batch`: one message per line of JSON, through the daemon and no other way. Every line has its id before
// anything is sent, so that the same command may always be run again: what was taken is not sent twice.
import { readFileSync } from "node:fs";
import type { DaemonClient, SendOutcome } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { MeshError } from "@claudemesh/protocol/errors";
import { parseStrictJson, StrictJsonError } from "@claudemesh/protocol/json";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { IdentifiedSend } from "@claudemesh/protocol/messages/send-request";
import type { Outcome } from "../command.ts";
import { withDaemon } from "../daemon/daemon-access.ts";
import { exitCodes, expectBody, Refused } from "../exit-codes.ts";
import { failureOf } from "../failure.ts";
import { hint } from "../hints.ts";
import { neutralise } from "../output/printable.ts";
import { describeWay } from "../output/send-way.ts";
import type { Shell } from "../shell.ts";
import { type WaitBody, type Waiting, waitComplaint, waitExitCodes, waitFor } from "./send-wait.ts";

export type BatchOptions = {
  /** The path of a file, or `-`. */
  readonly batch: string;
  /** The beginning of the ids of lines that bring none. */
  readonly id?: string | undefined;
  readonly json?: boolean | undefined;
  readonly waiting?: Waiting | undefined;
};

type Line = { readonly line: number; readonly send: IdentifiedSend };
type Result = { readonly line: number; readonly client_message_id: string } & (
  | (Pick<Extract<SendOutcome, { type: "accepted" }>, "type" | "status" | "body"> & { readonly wait?: WaitBody })
  | { readonly type: "refused" | "unanswered"; readonly status?: number; readonly body: Record<string, unknown> }
  /** An earlier one was left without an answer. */
  | { readonly type: "not_sent" }
);

export async function sendBatch(shell: Shell, paths: MeshPaths, options: BatchOptions): Promise<Outcome> {
  const lines = readLines(readFileSync(options.batch === "-" ? 0 : options.batch), options.id);
  const codes = new Set<number>();
  const results = await withDaemon(shell, paths, async (daemon) => {
    // Where no daemon runs, that is said at once, and not after further tries.
    expectBody(await daemon.version());
    const sent = await sendLines(daemon, lines, codes, (result) => {
      if (options.json !== true) shell.out(neutralise(describe(result)));
    });
    return options.waiting === undefined ? sent : waitForEach(shell, daemon, sent, options.waiting, codes);
  });
  process.exitCode = worstOf(codes);
  const count = (type: Result["type"]) => results.filter((result) => result.type === type).length;
  const [accepted, refused] = [count("accepted"), count("refused")];
  const open = results.length - accepted - refused;
  if (refused > 0) shell.err(`claudemesh: ${refused} of ${results.length} messages were refused; mend those lines.`);
  if (open > 0) {
    shell.err(`claudemesh: ${open} have no answer; run the same command again: what was accepted is not sent twice.`);
  }
  const counts = { accepted, refused, unanswered: count("unanswered"), not_sent: count("not_sent") };
  return { value: { ...counts, results }, text: `${accepted} of ${results.length} messages accepted` };
}

/** One after the other within one time for all: the others go on meanwhile. */
async function waitForEach(
  shell: Shell,
  daemon: DaemonClient,
  results: readonly Result[],
  { stage, timeoutMs }: Waiting,
  codes: Set<number>,
): Promise<Result[]> {
  const endMs = performance.now() + timeoutMs;
  const waited: Result[] = [];
  for (const result of results) {
    if (result.type !== "accepted") {
      waited.push(result);
      continue;
    }
    const leftMs = Math.max(endMs - performance.now(), 0);
    const wait = await waitFor(daemon, result.body.outbox_id, { stage, timeoutMs: leftMs });
    codes.add(waitExitCodes[wait.outcome]);
    const complaint = waitComplaint(result.client_message_id, wait, timeoutMs);
    if (complaint !== undefined) shell.err(hint(shell, `claudemesh: ${complaint}`));
    waited.push({ ...result, wait });
  }
  return waited;
}

/** A daemon that restarts is back by then. */
const retryForMs = 3_000;

/** Part by part, so that each line is reported soon. After a part without an answer nothing more is sent. */
async function sendLines(
  daemon: DaemonClient,
  lines: readonly Line[],
  codes: Set<number>,
  onResult: (result: Result) => void,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let at = 0; at < lines.length; at += limits.sendsPerRequest) {
    const part = lines.slice(at, at + limits.sendsPerRequest);
    const silent = results.some(({ type }) => type === "unanswered");
    const sends = part.map(({ send }) => send);
    const outcomes = silent ? [] : await daemon.sendMany(sends, { retryForMs });
    for (const [index, { line, send }] of part.entries()) {
      const { client_message_id } = send;
      const result: Result = { line, client_message_id, ...endOf(outcomes[index], codes) };
      results.push(result);
      onResult(result);
    }
  }
  return results;
}

type End = Result extends infer Each
  ? Each extends unknown
    ? Omit<Each, "line" | "client_message_id">
    : never
  : never;

function endOf(outcome: SendOutcome | undefined, codes: Set<number>): End {
  if (outcome === undefined) return { type: "not_sent" };
  if (outcome.type === "accepted") return { type: outcome.type, status: outcome.status, body: outcome.body };
  const { type } = outcome;
  const { exitCode, body } = failureOf(type === "refused" ? new Refused(outcome.status, outcome.body) : outcome.error);
  codes.add(exitCode);
  return type === "refused" ? { type, status: outcome.status, body } : { type, body };
}

/** What is not known first, then what will not end by itself. */
const worstFirst = [
  exitCodes.unreachable,
  exitCodes.failed,
  exitCodes.usage,
  exitCodes.conflict,
  exitCodes.notFound,
  exitCodes.busy,
  exitCodes.notYet,
];

function worstOf(codes: ReadonlySet<number>): number {
  return worstFirst.find((code) => codes.has(code)) ?? exitCodes.done;
}

function describe(result: Result): string {
  const { client_message_id: id } = result;
  switch (result.type) {
    case "accepted":
      return [
        `${id}  ${result.body.status}${result.body.duplicate ? " (asked before)" : ""}`,
        ...describeWay(result.body),
      ].join(" · ");
    case "refused":
      return `${id}  refused (line ${result.line}): ${String(result.body.message)}`;
    case "unanswered":
      return `${id}  no answer`;
    case "not_sent":
      return `${id}  not sent`;
  }
}

/** Every line is read before anything is sent: of a file with a mistake nothing is sent. */
function readLines(bytes: Uint8Array, id: string | undefined): Line[] {
  const lines: Line[] = [];
  let line = 0;
  for (let start = 0; start < bytes.length; ) {
    line++;
    const newline = bytes.indexOf(0x0a, start);
    const end = newline < 0 ? bytes.length : newline;
    const text = bytes.subarray(start, end);
    start = end + 1;
    if (text.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)) continue;
    lines.push({ line, send: readLine(text, line, id) });
  }
  if (lines.length > 0) return lines;
  throw new MeshError("invalid_request", 'There is no message to send: give one {"to", "message", …} per line.');
}

function readLine(bytes: Uint8Array, line: number, id: string | undefined): IdentifiedSend {
  const refuse = (what: string) => new MeshError("invalid_request", `Line ${line} ${what} Nothing was sent.`, { line });
  let value: unknown;
  try {
    value = parseStrictJson(bytes, { maxDepth: limits.jsonDepth });
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    throw refuse(`is no JSON that can be sent (${error.reason}).`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refuse('is no object like {"to": "#builds", "message": "…", "client_message_id": "build-42"}.');
  }
  const send = value as IdentifiedSend;
  if (send.client_message_id !== undefined) return send;
  if (id !== undefined) return { ...send, client_message_id: `${id}-${line}` };
  throw refuse("has no client_message_id; give it one, or run with --id <id> to call line n <id>-n.");
}
