// A member's calls over HTTP with a bearer token, for programs that have a token and no keys. Same operations, same
// answers and errors as over the socket; every request stands alone, so that there is no connection to lose.
import { MeshError } from "@claudemesh/protocol/errors";
import { parseOwnJsonText, StrictJsonError, writeStrictJson } from "@claudemesh/protocol/json";
import { type OperationName, type OperationSpec, operations } from "@claudemesh/protocol/wire/operations";
import { type BrokerCall, refusalFrom } from "./broker-client.ts";
import { brokerHttpUrl } from "./broker-url.ts";

export type HttpCallOptions = {
  readonly broker: string;
  /** Name or id. */
  readonly mesh: string;
  /** Of `claudemesh mesh token`. */
  readonly token: string;
  readonly requestTimeoutMs?: number;
};

const defaultRequestTimeoutMs = 30_000;

/** Asks once; the caller decides whether to ask again after a lost answer. */
export function createHttpCall(options: HttpCallOptions): BrokerCall {
  const { broker, mesh, token, requestTimeoutMs = defaultRequestTimeoutMs } = options;
  return async (operation, input) => {
    const { method, path, body } = routeOf(operation, input as Readonly<Record<string, unknown>>);
    const headers: Record<string, string> = { authorization: `Bearer ${token}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const request = new Request(brokerHttpUrl(broker, `/v1/meshes/${encodeURIComponent(mesh)}${path}`), {
      method,
      headers,
      ...(body === undefined ? {} : { body: writeStrictJson(body) }),
      // A redirect would carry the token to an address that the user did not give.
      redirect: "manual",
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
    const { status, value } = await send(request, broker, operation);
    if (status >= 200 && status < 300) return value;
    throw refusalFrom(status, value);
  };
}

/** Fields of the path first; the rest becomes the query of a GET and the body of any other method. */
function routeOf(operation: OperationName, input: Readonly<Record<string, unknown>>) {
  const { http }: OperationSpec = operations[operation];
  if (http === undefined) {
    throw new MeshError("invalid_request", `"${operation}" exists only on the WebSocket.`, { field: "operation" });
  }
  const rest: Record<string, unknown> = { ...input };
  const path = http.path.replaceAll(/:([a-z_]+)/g, (_, field: string) => {
    delete rest[field];
    return encodeURIComponent(String(input[field]));
  });
  for (const [inBody, inFrame] of Object.entries(http.names ?? {})) {
    if (!Object.hasOwn(rest, inFrame)) continue;
    rest[inBody] = rest[inFrame];
    delete rest[inFrame];
  }
  if (http.method !== "GET")
    return { method: http.method, path, body: Object.keys(rest).length > 0 ? rest : undefined };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(rest)) query.set(name, String(value));
  return { method: http.method, path: query.size === 0 ? path : `${path}?${query}`, body: undefined };
}

async function send(request: Request, broker: string, operation: string): Promise<{ status: number; value: unknown }> {
  try {
    const response = await fetch(request);
    return { status: response.status, value: parseAnswer(await response.text()) };
  } catch (cause) {
    const sent = !neverLeft(cause);
    const message = sent
      ? `The broker at ${broker} did not answer "${operation}"; it may have been carried out.`
      : `No connection to the broker at ${broker}; is it running there?`;
    throw new MeshError("broker_unreachable", message, { broker, sent }, cause);
  }
}

/** True for failures to connect; their code is in the cause of fetch's error. */
function neverLeft(error: unknown): boolean {
  const { code } = ((error as Error | undefined)?.cause ?? {}) as { code?: unknown };
  return code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "EHOSTUNREACH" || code === "ENETUNREACH";
}

function parseAnswer(text: string): unknown {
  try {
    return parseOwnJsonText(text);
  } catch (error) {
    if (error instanceof StrictJsonError) return undefined;
    throw error;
  }
}
