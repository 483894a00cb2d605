// One HTTP request to a webhook's receiver. A name is looked up once, what it leads to is checked, and the connection
// goes to exactly the addresses that passed: looking up again could give another answer. Redirects are not followed,
// little of the answer is read, and everything together has one time-out.
import { lookup } from "node:dns/promises";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { LookupFunction } from "node:net";
import type { WebhookTry } from "@claudemesh/messages/webhook-delivery";
import type { WebhookRequest } from "@claudemesh/messages/webhook-request";
import { isPlainlyPrivate, isPublicAddress } from "./address-guard.ts";

type ResolvedAddress = { readonly address: string; readonly family: number };

export type PostWebhookOptions = {
  readonly allowPrivate: boolean;
  readonly timeoutMs: number;
  /** Ends what is under way, as when the broker stops. */
  readonly signal: AbortSignal;
  readonly resolve?: (hostname: string) => Promise<readonly ResolvedAddress[]>;
};

/** Of the answer's body. It is not needed; reading a little lets well-behaved receivers finish. */
const answerBytesMax = 16_384;
const answerHeaderBytesMax = 16_384;
const reasonCharactersMax = 200;

class RefusedAddressError extends Error {
  override readonly name = "RefusedAddressError";
}

/** Never rejects. */
export async function postWebhook(
  url: string,
  request: WebhookRequest,
  options: PostWebhookOptions,
): Promise<WebhookTry> {
  const timedOut = AbortSignal.timeout(options.timeoutMs);
  try {
    return await exchange(new URL(url), request, options, AbortSignal.any([timedOut, options.signal]));
  } catch (error) {
    if (timedOut.aborted) return { type: "failed", reason: `no answer within ${options.timeoutMs} ms` };
    if (options.signal.aborted) return { type: "interrupted" };
    return { type: "failed", reason: describe(error) };
  }
}

async function exchange(
  url: URL,
  { headers, body }: WebhookRequest,
  options: PostWebhookOptions,
  signal: AbortSignal,
): Promise<WebhookTry> {
  if (!options.allowPrivate && isPlainlyPrivate(url)) throw refusedAddress(url.hostname);
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const request = send(url, {
    method: "POST",
    headers: { ...headers, connection: "close" },
    // A connection of its own each: none that was checked for another name is used again.
    agent: false,
    lookup: checkedLookup(options),
    maxHeaderSize: answerHeaderBytesMax,
    signal,
  });
  const answer = await answerTo(request, body);
  await readLittle(answer);
  request.destroy();
  return { type: "answered", status: answer.statusCode ?? 0, retryAfterMs: retryAfterMsOf(answer) };
}

function answerTo(request: ClientRequest, body: Buffer): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once("response", resolve);
    // Stays: what goes wrong after the answer does not matter, and must not end the process.
    request.on("error", reject);
    request.end(body);
  });
}

/** The status is what counts: an answer that breaks off or goes on for ever has been given. */
function readLittle(answer: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    answer.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > answerBytesMax) resolve();
    });
    answer.once("close", resolve);
    answer.once("end", resolve);
    answer.on("error", () => resolve());
  });
}

function checkedLookup({ allowPrivate, resolve = resolveAll }: PostWebhookOptions): LookupFunction {
  return (hostname, { all }, done) => {
    resolve(hostname).then(
      (found) => {
        const allowed = allowPrivate ? found : found.filter(({ address }) => isPublicAddress(address));
        const [first] = allowed;
        if (first === undefined) done(refusedAddress(hostname), "");
        else if (all === true) done(null, [...allowed]);
        else done(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => done(error, ""),
    );
  };
}

function resolveAll(hostname: string): Promise<readonly ResolvedAddress[]> {
  return lookup(hostname, { all: true });
}

function refusedAddress(hostname: string): RefusedAddressError {
  return new RefusedAddressError(`${hostname} leads to a private address; see --webhook-allow-private`);
}

/** Seconds or a date, as a receiver that is busy may say. */
function retryAfterMsOf(answer: IncomingMessage): number {
  const text = answer.headers["retry-after"] ?? "";
  if (/^[0-9]{1,9}$/.test(text)) return Number(text) * 1000;
  const untilMs = Date.parse(text);
  return Number.isNaN(untilMs) ? 0 : Math.max(untilMs - Date.now(), 0);
}

function describe(error: unknown): string {
  const errors = error instanceof AggregateError ? error.errors : [error];
  const [first] = errors as unknown[];
  const { code, message } =
    first instanceof Error ? (first as NodeJS.ErrnoException) : { code: undefined, message: "" };
  // Several addresses were tried: each failure's code says enough.
  const text = errors.length > 1 ? errors.map((one: NodeJS.ErrnoException) => one.code).join(", ") : message || code;
  return (text ?? "the request failed").replaceAll("\0", "").slice(0, reasonCharactersMax);
}
