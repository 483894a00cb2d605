// How a command fails: the documented exit code for each kind of failure, and the body that is printed about it.
import { DaemonUnreachable } from "@claudemesh/client/daemon";
import { type ErrorBody, isErrorBody, MeshError } from "@claudemesh/protocol/errors";
import { exitCodes } from "./exit-codes.ts";

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
  const message = error instanceof Error ? error.message : String(error);
  return { exitCode: exitCodes.failed, body: { error: "failed", message, retryable: false } };
}

function refusalOf(error: unknown): { readonly status: number; readonly body: ErrorBody } | undefined {
  if (error instanceof MeshError) return { status: error.status, body: error.toBody() };
  if (!(error instanceof Error)) return undefined;
  const { status, body } = error as { status?: unknown; body?: unknown };
  return typeof status === "number" && isErrorBody(body) ? { status, body } : undefined;
}

function exitCodeOf(status: number, code: string): number {
  if (code === "broker_unreachable" || code === "daemon_unreachable") return exitCodes.unreachable;
  if (status === 404) return exitCodes.notFound;
  if (status === 409) return exitCodes.conflict;
  if (status === 429) return exitCodes.busy;
  return exitCodes.failed;
}
