// The documented exit codes, and a refusal that a daemon or broker answered as something to throw. Which failure ends
// with which code is decided in failure.ts.
import { type ErrorBody, isErrorBody } from "@claudemesh/protocol/errors";

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  conflict: 4,
  notFound: 5,
  busy: 6,
  /** What was waited for has not happened in time; nothing failed. */
  notYet: 7,
} as const;

/** As help prints them; docs/exit-codes.md says more of each. */
export const exitCodeMeanings: readonly (readonly [number, string])[] = [
  [exitCodes.done, "done"],
  [exitCodes.failed, "refused or failed"],
  [exitCodes.usage, "wrong usage, or a malformed id, name or address"],
  [exitCodes.unreachable, "daemon or broker not reachable"],
  [exitCodes.conflict, "conflict with what is there"],
  [exitCodes.notFound, "not found"],
  [exitCodes.busy, "rate-limited, busy, or not known yet"],
  [exitCodes.notYet, "has not happened in the time given"],
];

/** The command line lacks something or contradicts itself, which only the command can see. */
export class WrongUsage extends Error {
  override readonly name = "WrongUsage";
}

/** A refusal with its status and body, as a command's failure. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;
  readonly body: ErrorBody;

  constructor(status: number, body: ErrorBody, cause?: unknown) {
    super(body.message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.body = body;
  }
}

/** Throws the refusal, or gives the body. */
export function expectBody<Body>(answer: { readonly status: number; readonly body: Body | ErrorBody }): Body {
  if (answer.status >= 400 && isErrorBody(answer.body)) throw new Refused(answer.status, answer.body);
  return answer.body as Body;
}
