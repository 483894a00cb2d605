// The two ways in which a daemon fails whoever asks it: no answer, and a refusal where there is no place for one.
import { type ErrorBody, isErrorBody } from "@claudemesh/protocol/errors";

/**
 * No answer came. `sent` false: connecting failed and nothing was written. `sent` true: the daemon may have received
 * the request and acted on it, so only the same request to the same daemon is a safe retry, never another way.
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

/** The daemon answered with a refusal, and the caller asked for nothing but the body, or for an iterator. */
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

/** What a call brought, for a program that has nothing else to do with a refusal than to throw it. */
export function bodyOf<Body>(answer: { readonly status: number; readonly body: Body | ErrorBody }): Body {
  if (answer.status >= 400 && isErrorBody(answer.body)) throw new DaemonRefused(answer.status, answer.body);
  return answer.body as Body;
}
