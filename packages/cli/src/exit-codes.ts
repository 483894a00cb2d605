// How every command ends: the documented exit code for each kind of failure, and what is printed about it.
import { DaemonUnreachable } from "@claudemesh/client/daemon";
import { type ErrorBody, isErrorBody, MeshError } from "@claudemesh/protocol/errors";

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  conflict: 4,
  notFound: 5,
  busy: 6,
} as const;

/** A refusal that a daemon or broker answered, as a command's failure. */
class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;
  readonly body: ErrorBody;

  constructor(status: number, body: ErrorBody) {
    super(body.message);
    this.status = status;
    this.body = body;
  }
}

/** Throws the refusal, or gives the body. */
export function expectBody<Body>(answer: { readonly status: number; readonly body: Body | ErrorBody }): Body {
  if (answer.status >= 400 && isErrorBody(answer.body)) throw new Refused(answer.status, answer.body);
  return answer.body as Body;
}

export type Failure = { readonly exitCode: number; readonly body: ErrorBody };

export function failureOf(error: unknown): Failure {
  if (error instanceof DaemonUnreachable) {
    const message = error.sent
      ? "The daemon took the request and then went silent; it may have been accepted. Ask again with the same id."
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
  if (code === "broker_unreachable") return exitCodes.unreachable;
  if (status === 404) return exitCodes.notFound;
  if (status === 409) return exitCodes.conflict;
  if (status === 429) return exitCodes.busy;
  return exitCodes.failed;
}
