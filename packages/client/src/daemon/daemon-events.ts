// The daemon's events as an async iterator that survives restarts of the daemon: after a lost connection it goes on
// after the last event, so that no message is missed. Events other than messages arrive only while connected.
import type { Agent, IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { isErrorBody } from "@claudemesh/protocol/errors";
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import type { DaemonEvent } from "./daemon-bodies.ts";
import { DaemonRefused, DaemonUnreachable } from "./daemon-failures.ts";
import { readTextEvents } from "./event-text-reader.ts";
import { watchSending } from "./request-sending.ts";

// An ES module import would load every lazy part of node:http, which would take most of the time of a short command.
const { Agent: HttpAgent, request: httpRequest } = process.getBuiltinModule("node:http");

export type EventsOptions = {
  /** Go on after this event; without it, from now on. */
  readonly lastEventId?: string;
  /** Ends the iteration without an error. */
  readonly signal?: AbortSignal;
};

const kinds: ReadonlySet<string> = new Set<DaemonEvent["kind"]>([
  "message",
  "peer_join",
  "peer_leave",
  "broker_status",
  "outbox_pressure_high",
  "outbox",
  "lagged",
]);
/** The daemon sends something every 15 s; one that is silent for this long is gone. */
const silenceMs = 60_000;
const reconnect = { minMs: 100, maxMs: 5_000 };

/**
 * Throws when the daemon cannot be reached or refuses before the first event. Later the iterator waits for the daemon
 * without a limit, and throws only a refusal that waiting does not change.
 */
export async function* readEvents(socketPath: string, options: EventsOptions = {}): AsyncGenerator<DaemonEvent> {
  const { signal } = options;
  let lastEventId = options.lastEventId;
  let wasConnected = false;
  let failures = 0;
  while (!isAborted(signal)) {
    try {
      for await (const event of readStream(socketPath, lastEventId, signal)) {
        wasConnected = true;
        failures = 0;
        lastEventId = event.id;
        yield event;
      }
    } catch (error) {
      if (isAborted(signal)) return;
      if (!wasConnected || !isPassing(error)) throw error;
    }
    await pause(backoffDelayMs(++failures, Math.random(), reconnect), signal);
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function isPassing(error: unknown): boolean {
  if (error instanceof DaemonUnreachable) return true;
  return error instanceof DaemonRefused && error.body.retryable;
}

async function pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(delayMs, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    if (!isAborted(signal)) throw error;
  }
}

/** Ends when the daemon ends the stream; throws when the connection is cut off. */
async function* readStream(
  socketPath: string,
  lastEventId: string | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<DaemonEvent> {
  const agent = new HttpAgent({ keepAlive: false });
  try {
    const response = await connect(agent, socketPath, lastEventId, signal);
    if (response.statusCode !== 200) throw await refusalOf(response);
    for await (const { kind, id, data } of readTextEvents(response)) {
      if (kinds.has(kind)) yield { kind, id, data: parseOwnJsonText(data) } as unknown as DaemonEvent;
    }
  } catch (error) {
    if (error instanceof DaemonRefused || error instanceof DaemonUnreachable) throw error;
    const message = `The daemon at ${socketPath} went away while its events were read.`;
    throw new DaemonUnreachable(message, { sent: true, timedOut: false, cause: error });
  } finally {
    agent.destroy();
  }
}

function connect(
  agent: Agent,
  socketPath: string,
  lastEventId: string | undefined,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      agent,
      socketPath,
      path: "/v1/events",
      headers: lastEventId === undefined ? {} : { "last-event-id": lastEventId },
      ...(signal === undefined ? {} : { signal }),
    });
    const wasSent = watchSending(request);
    request.on("response", resolve);
    request.on("error", (cause: NodeJS.ErrnoException) => {
      const message = `The daemon at ${socketPath} did not answer: ${cause.code ?? cause.message}.`;
      reject(new DaemonUnreachable(message, { sent: wasSent(), timedOut: false, cause }));
    });
    request.setTimeout(silenceMs, () => request.destroy(new Error("the daemon is silent")));
    request.end();
  });
}

async function refusalOf(response: IncomingMessage): Promise<DaemonRefused> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const body: unknown = parseOwnJsonText(Buffer.concat(chunks).toString("utf8"));
  if (!isErrorBody(body)) throw new Error("what answers on its socket is no daemon");
  return new DaemonRefused(response.statusCode ?? 0, body);
}
