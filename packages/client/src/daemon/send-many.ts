// Many sends through the daemon: split into requests of a size that it accepts, and asked again under the same ids
// while they have no final answer. Each send has its own outcome; no answer, and no missing answer, of the daemon is
// thrown.
// Why: docs/decisions/0088.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type ErrorBody, isErrorBody } from "@claudemesh/protocol/errors";
import { createUlidGenerator } from "@claudemesh/protocol/ids";
import { writeStrictJson } from "@claudemesh/protocol/json";
import { backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { IdentifiedSend, SendRequest } from "@claudemesh/protocol/messages/send-request";
import type { SendBody, SendManyBody } from "./daemon-bodies.ts";
import type { DaemonCall } from "./daemon-call.ts";
import { DaemonUnreachable } from "./daemon-failures.ts";
import { retryBackoff } from "./until-answered.ts";

export type SendManyOptions = {
  /** How long to ask again about sends that may still be accepted, while none gets a final answer. 0: ask once. */
  readonly retryForMs?: number;
};

export type SendOutcome = { readonly client_message_id: string } & (
  | { readonly type: "accepted"; readonly status: number; readonly body: SendBody }
  /** Nothing of it is stored. Where the body says `retryable`, the time for asking again had ended. */
  | { readonly type: "refused"; readonly status: number; readonly body: ErrorBody }
  /**
   * Where `error.sent` is true, the daemon may have accepted it: only the same id and content are safe to send again.
   */
  | { readonly type: "unanswered"; readonly error: DaemonUnreachable }
);

type Call = (body: { readonly sends: readonly IdentifiedSend[] }) => ReturnType<DaemonCall>;

const defaultRetryForMs = 10_000;

/** Requests follow one another; there is one outcome for each send, in their order. */
export async function sendMany(
  call: DaemonCall,
  sends: readonly SendRequest[],
  { retryForMs = defaultRetryForMs }: SendManyOptions = {},
): Promise<SendOutcome[]> {
  const nextId = createUlidGenerator({ nowMs: Date.now, randomBytes });
  const identified = sends.map((send) => ({ ...send, client_message_id: send.client_message_id ?? nextId() }));
  const ask: Ask = (part) => askOnce((body) => call("POST", "/v1/send/many", body), part);
  const patience = createPatience(retryForMs);
  const outcomes: SendOutcome[] = [];
  for (const part of splitSends(identified)) outcomes.push(...(await askUntilFinal(ask, part, patience)));
  return outcomes;
}

/**
 * As many sends in a request as fit, by number and by bytes; a send that is too large by itself gets its own request.
 */
export function splitSends(sends: readonly IdentifiedSend[]): IdentifiedSend[][] {
  const frameBytes = Buffer.byteLength('{"sends":[]}');
  const parts: IdentifiedSend[][] = [];
  let part: IdentifiedSend[] = [];
  let bytes = frameBytes;
  for (const send of sends) {
    const sendBytes = Buffer.byteLength(writeStrictJson(send)) + 1;
    const isFull = part.length === limits.sendsPerRequest || bytes + sendBytes > limits.requestBytes;
    if (part.length === 0 || isFull) {
      part = [];
      parts.push(part);
      bytes = frameBytes;
    }
    part.push(send);
    bytes += sendBytes;
  }
  return parts;
}

type Ask = (sends: readonly IdentifiedSend[]) => Promise<SendOutcome[]>;

async function askUntilFinal(ask: Ask, part: readonly IdentifiedSend[], patience: Patience): Promise<SendOutcome[]> {
  const outcomes = await ask(part);
  let open = part.map((_, index) => index);
  for (let failures = 1; ; failures++) {
    const stillOpen = open.filter((index) => mayStillBeAccepted(outcomes[index]));
    if (stillOpen.length < open.length) patience.renew();
    const delayMs = backoffDelayMs(failures, Math.random(), retryBackoff);
    if (stillOpen.length === 0 || !patience.lasts(delayMs)) return outcomes;
    await sleep(delayMs);
    open = stillOpen;
    const later = await ask(part.filter((_, index) => open.includes(index)));
    for (const [at, index] of open.entries()) outcomes[index] = later[at] as SendOutcome;
  }
}

type Patience = { readonly renew: () => void; readonly lasts: (delayMs: number) => boolean };

function createPatience(retryForMs: number): Patience {
  let sinceMs = performance.now();
  return {
    renew: () => {
      sinceMs = performance.now();
    },
    lasts: (delayMs) => performance.now() + delayMs <= sinceMs + retryForMs,
  };
}

function mayStillBeAccepted(outcome: SendOutcome | undefined): boolean {
  return outcome?.type === "unanswered" || (outcome?.type === "refused" && outcome.body.retryable);
}

async function askOnce(call: Call, sends: readonly IdentifiedSend[]): Promise<SendOutcome[]> {
  const each = (outcomeOf: (index: number) => WithoutId<SendOutcome>): SendOutcome[] =>
    sends.map(({ client_message_id }, index) => ({ client_message_id, ...outcomeOf(index) }));
  try {
    const { status, body } = await call({ sends });
    if (!isErrorBody(body)) {
      const results = (body as Partial<SendManyBody>).results ?? [];
      return each((index) => readResult(results[index]));
    }
    // A send that is invalid or too large makes the whole request fail; alone, it affects no other send.
    if ((status === 400 || status === 413) && sends.length > 1) {
      const half = Math.ceil(sends.length / 2);
      return [...(await askOnce(call, sends.slice(0, half))), ...(await askOnce(call, sends.slice(half)))];
    }
    return each(() => ({ type: "refused", status, body }));
  } catch (error) {
    if (!(error instanceof DaemonUnreachable)) throw error;
    return each(() => ({ type: "unanswered", error }));
  }
}

type WithoutId<Outcome> = Outcome extends unknown ? Omit<Outcome, "client_message_id"> : never;

function readResult(result: SendManyBody["results"][number] | undefined): WithoutId<SendOutcome> {
  if (result === undefined) {
    throw new DaemonUnreachable("The daemon answered without a result for each send.", { sent: true, timedOut: false });
  }
  const { status, body } = result;
  return status >= 400 && isErrorBody(body)
    ? { type: "refused", status, body }
    : { type: "accepted", status, body: body as SendBody };
}
