// How a command fails: the documented exit code for each kind of failure, and the body that is printed about it.
import { DaemonUnreachable } from "@claudemesh/client/daemon";
import { type ErrorBody, isErrorBody, MeshError } from "@claudemesh/protocol/errors";
import { exitCodes, WrongUsage } from "./exit-codes.ts";

export type Failure = { readonly exitCode: number; readonly body: ErrorBody };

export function failureOf(error: unknown): Failure {
  if (error instanceof DaemonUnreachable) {
    const message = error.sent
      ? "The daemon took the request and then went silent; it may have been carried out. Look with `claudemesh daemon status`, and ask again."
      : "No daemon is running here. Start one with `claudemesh daemon up`, or everything at once with `claudemesh up`.";
    const body = { error: "daemon_unreachable", message, retryable: true, sent: error.sent };
    return { exitCode: exitCodes.unreachable, body };
  }
  const refusal = refusalOf(error);
  if (refusal !== undefined) return { exitCode: exitCodeOf(refusal.status, refusal.body.error), body: refusal.body };
  if (error instanceof WrongUsage) {
    return { exitCode: exitCodes.usage, body: { error: "wrong_usage", message: error.message, retryable: false } };
  }
  const message = inWords(error) ?? (error instanceof Error ? error.message : String(error));
  // By its name, since most commands never load the broker.
  const isUsage = error instanceof Error && error.name === "BrokerConfigError";
  const exitCode = isUsage ? exitCodes.usage : exitCodes.failed;
  return { exitCode, body: { error: isUsage ? "invalid_setting" : "failed", message, retryable: false } };
}

/** What the system says about a file that somebody named is short and has no next step. */
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
