// The reply of GET /v1/events as a sink for one reader's events.
import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { EventHub, OpenStream } from "../services/event-hub.ts";
import type { EventSink } from "../services/event-stream.ts";

/** A reader that comes back by itself sends the header; the query is for those who cannot set one. */
export function openEventStream(hub: Pick<EventHub, "open">, request: FastifyRequest, reply: FastifyReply): void {
  const header = request.headers["last-event-id"];
  const query = (request.query as { last_event_id?: string }).last_event_id;
  const given = typeof header === "string" && header !== "" ? header : query;
  const response = reply.raw;
  let stream: OpenStream | undefined;
  response.on("drain", () => stream?.drained());
  response.on("close", () => stream?.closed());
  // The reader went away while we wrote; the close that follows says the same.
  response.on("error", () => stream?.closed());
  stream = hub.open(given, () => {
    reply.hijack();
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      // A connection carries one stream: where that ends, the connection does too.
      connection: "close",
    });
    return sinkOf(response);
  });
  // The reader may have gone before the listeners above were added.
  if (response.destroyed) stream.closed();
}

function sinkOf(response: ServerResponse): EventSink {
  return {
    write: (text) => response.write(text),
    end: () => response.end(),
    destroy: () => response.destroy(),
  };
}
