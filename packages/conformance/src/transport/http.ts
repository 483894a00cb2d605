// One HTTP request over TCP, TLS or a Unix socket, sent exactly as given: the caller chooses headers and body bytes,
// valid or not. Each answer carries its request in a form for people and without secrets.
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { CannotBegin, Miss } from "../frame/endings.ts";
import type { Answer } from "../frame/expect.ts";
import { show } from "../frame/pattern.ts";

export type HttpTarget =
  | { readonly type: "tcp"; readonly host: string; readonly port: number; readonly secure: boolean }
  | { readonly type: "unix"; readonly path: string };

export type HttpCall = {
  readonly method: string;
  readonly path: string;
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Shown in a report in place of the path, where the path contains a secret. */
  readonly shownPath?: string;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent unchanged, in place of `json`. */
  readonly raw?: string | Uint8Array;
};

export type HttpAnswer = Answer & { readonly headers: IncomingHttpHeaders; readonly text: string };

/** The connection ended before an answer came, or no server listened. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

const timeoutMs = 30_000;

export function readHttpUrl(url: string): HttpTarget & { readonly type: "tcp" } {
  let parsed: URL;
  try {
    parsed = new URL(url.replace(/^ws/, "http"));
  } catch {
    throw new CannotBegin(`--url ${url} is no address; write http://<host>:<port>.`);
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    throw new CannotBegin(`--url ${url}: only http, https, ws and wss are known.`);
  }
  const secure = parsed.protocol === "https:";
  const host = parsed.hostname.replace(/^\[(.*)\]$/, "$1");
  return { type: "tcp", host, port: Number(parsed.port) || (secure ? 443 : 80), secure };
}

export function describeCall(call: HttpCall): string {
  const { method, path, shownPath = path, headers = {}, json, raw, token } = call;
  const shown = Object.entries(headers).map(([name, value]) => {
    return `${name}: ${name === "authorization" ? "…" : value.slice(0, 200)}`;
  });
  if (token !== undefined) shown.unshift("authorization: Bearer …");
  const body = raw === undefined ? (json === undefined ? undefined : show(json)) : showRaw(raw);
  return [`${method} ${shownPath}`, ...shown, ...(body === undefined ? [] : [body])].join("\n");
}

function showRaw(raw: string | Uint8Array): string {
  const text = typeof raw === "string" ? raw : `bytes ${Buffer.from(raw).toString("hex")}`;
  return text.length > 600 ? `${text.slice(0, 600)}… (${text.length} characters)` : text;
}

/** The target in the form that Node's requests take. */
export function addressOf(target: HttpTarget) {
  return target.type === "unix" ? { socketPath: target.path } : { host: target.host, port: target.port };
}

/** Rejects with NoAnswer where no answer came. */
export function exchange(target: HttpTarget, call: HttpCall): Promise<HttpAnswer> {
  const payload = call.raw ?? (call.json === undefined ? undefined : JSON.stringify(call.json));
  const headers: Record<string, string> = { connection: "close" };
  if (payload !== undefined) headers["content-type"] = "application/json";
  if (call.token !== undefined) headers.authorization = `Bearer ${call.token}`;
  Object.assign(headers, call.headers);
  const send = target.type === "tcp" && target.secure ? httpsRequest : httpRequest;
  const request = describeCall(call);
  return new Promise((resolve, reject) => {
    const fail = (error: Error) =>
      reject(new NoAnswer(`${call.method} ${call.shownPath ?? call.path}: ${error.message}`, { cause: error }));
    const outgoing = send(
      { ...addressOf(target), method: call.method, path: call.path, headers, agent: false },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.on("error", fail);
        incoming.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, body: readBody(text), request });
        });
      },
    );
    outgoing.setTimeout(timeoutMs, () => outgoing.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)));
    outgoing.on("error", fail);
    outgoing.end(payload);
  });
}

/** The same, where the lack of an answer is a miss. */
export async function ask(target: HttpTarget, call: HttpCall): Promise<HttpAnswer> {
  try {
    return await exchange(target, call);
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    throw new Miss({ expected: "an answer", got: error.message, request: describeCall(call) });
  }
}

/** The object in the text; an empty one where the text is something else. */
export function readBody(text: string): Record<string, unknown> {
  try {
    const value = parseOwnJsonText(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch {
    return {};
  }
}
