// How a command fails: the documented exit code for each kind of failure, and the body that is printed about it.
import { DaemonUnreachable } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { explainAbsence, readLastRun } from "@claudemesh/client/internal/last-run";
import { type ErrorBody, isErrorBody, MeshError } from "@claudemesh/protocol/errors";
import { exitCodes, WrongUsage } from "./exit-codes.ts";

export type Failure = { readonly exitCode: number; readonly body: ErrorBody };

/** `paths`: of the mesh that the command was about, where that is known; how its last daemon ended decides what to do next. */
export function failureOf(error: unknown, paths?: Pick<MeshPaths, "mesh" | "lastRun">): Failure {
  if (error instanceof DaemonUnreachable) {
    const message = describeUnreachable(error, paths);
    const body = { error: "daemon_unreachable", message, retryable: true, sent: error.sent };
    return { exitCode: exitCodes.unreachable, body };
  }
  const refusal = refusalOf(error);
  if (refusal !== undefined) {
    return { exitCode: exitCodeOf(refusal.status, refusal.body.error), body: withWait(refusal.body) };
  }
  if (error instanceof WrongUsage) {
    return { exitCode: exitCodes.usage, body: { error: "wrong_usage", message: error.message, retryable: false } };
  }
  const disk = diskFailureOf(error);
  if (disk !== undefined) return { exitCode: exitCodes.failed, body: disk };
  const message = inWords(error) ?? (error instanceof Error ? error.message : String(error));
  // By its name, since most commands never load the broker.
  const isUsage = error instanceof Error && error.name === "BrokerConfigError";
  const exitCode = isUsage ? exitCodes.usage : exitCodes.failed;
  return { exitCode, body: { error: isUsage ? "invalid_setting" : "failed", message, retryable: false } };
}

/** One that did not end as it was asked to may have to be mended first, and one that was replaced must not come back. */
function describeUnreachable({ sent, timedOut }: DaemonUnreachable, paths: Parameters<typeof failureOf>[1]): string {
  if (sent) {
    return "The daemon took the request and then went silent; it may have been carried out. Look with `claudemesh daemon status`, and ask again.";
  }
  const run = paths === undefined || timedOut ? undefined : readLastRun(paths.lastRun);
  if (paths === undefined || run === undefined || run.reason === "stopped") {
    return "No daemon is running here. Start one with `claudemesh daemon up`, or everything at once with `claudemesh up`.";
  }
  const { means, next } = explainAbsence(paths.mesh, run);
  return `${means} To go on: ${next}.`;
}

/** Where the answer says how long to wait, the message does too: people do not see the fields beside it. */
function withWait(body: ErrorBody): ErrorBody {
  const { retry_after_s: seconds } = body;
  return typeof seconds === "number" ? { ...body, message: `${body.message} Try again in ${seconds} s.` } : body;
}

/** What the system says about a file that the user named is short and has no next step. */
const fileProblems: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file; check the path",
  ENOTDIR: "a part of the path is no folder; check the path",
  EISDIR: "it is a folder; name a file in it",
  EACCES: "this user may not; check owner and mode",
  EPERM: "this user may not; check owner and mode",
  EROFS: "the disk is read-only; choose another place",
};

function inWords(error: unknown): string | undefined {
  const { code, path } = (error ?? {}) as { code?: unknown; path?: unknown };
  const problem = typeof code === "string" ? fileProblems[code] : undefined;
  return problem === undefined || typeof path !== "string" ? undefined : `${path} cannot be used: ${problem}.`;
}

/** By names and codes, since most commands never load a store. What was written before is whole or not there at all. */
function diskFailureOf(error: unknown): ErrorBody | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code, kind, path } = cause as { code?: unknown; kind?: unknown; path?: unknown };
    const what = `${typeof path === "string" ? `${path}: ` : ""}${cause.message}`;
    if (kind === "disk_full" || code === "ENOSPC" || code === "EDQUOT") {
      const message = `The disk is full (${what}). Make room, then run the command again.`;
      return { error: "insufficient_storage", message, retryable: true };
    }
    if (kind === "io" || code === "EIO") {
      const message = `The disk failed (${what}). That says nothing about what is stored: look after the disk, then run the command again.`;
      return { error: "storage_unavailable", message, retryable: true };
    }
  }
  return undefined;
}

function refusalOf(error: unknown): { readonly status: number; readonly body: ErrorBody } | undefined {
  if (error instanceof MeshError) return { status: error.status, body: error.toBody() };
  if (!(error instanceof Error)) return undefined;
  const { status, body } = error as { status?: unknown; body?: unknown };
  return typeof status === "number" && isErrorBody(body) ? { status, body } : undefined;
}

/** What the command line says is well formed, and refused all the same: another one need not fare better. */
const wellFormed: ReadonlySet<string> = new Set(["webhook_address_refused", "invalid_merge"]);

function exitCodeOf(status: number, code: string): number {
  if (status === 400 && !wellFormed.has(code)) return exitCodes.usage;
  if (["broker_unreachable", "not_our_broker", "daemon_unreachable"].includes(code)) return exitCodes.unreachable;
  if (status === 404) return exitCodes.notFound;
  if (status === 409) return exitCodes.conflict;
  if (status === 429) return exitCodes.busy;
  return exitCodes.failed;
}
