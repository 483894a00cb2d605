// The two failures of a call to a daemon: no answer, and a refusal where the caller's type has no room for one.
import { type ErrorBody, isErrorBody } from "@claudemesh/protocol/errors";

/**
 * No answer came. `sent` false: connecting failed and nothing was written. `sent` true: the daemon may have received
 * the request and acted on it, so the only safe retry is the same request to the same daemon.
 */
export class DaemonUnreachable extends Error {
  override readonly name = "DaemonUnreachable";
  readonly sent: boolean;
  readonly timedOut: boolean;

  constructor(
    message: string,
    facts: { readonly sent: boolean; readonly timedOut: boolean; readonly cause?: unknown },
  ) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.sent = facts.sent;
    this.timedOut = facts.timedOut;
  }
}

/** The daemon refused, and the caller asked for the body alone, or for an iterator. */
export class DaemonRefused extends Error {
  override readonly name = "DaemonRefused";
  readonly status: number;
  readonly body: ErrorBody;

  constructor(status: number, body: ErrorBody) {
    super(body.message);
    this.status = status;
    this.body = body;
  }
}

/** The body of an answer, for a program that throws every refusal. */
export function bodyOf<Body>(answer: { readonly status: number; readonly body: Body | ErrorBody }): Body {
  if (answer.status >= 400 && isErrorBody(answer.body)) throw new DaemonRefused(answer.status, answer.body);
  return answer.body as Body;
}
