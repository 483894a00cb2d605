// Bounds how long a peer may leave an answer unread. Until it is read, that answer and all that wait behind it on the
// same connection count as requests in flight.
import type { ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";

export type UnreadBounds = {
  /** The time for each megabyte, or part of one, that is left of the answer. */
  readonly answerMs: number;
  readonly checkMs: number;
};

const megabyte = 1_048_576;

/**
 * The time counts from the first check that finds the answer being written to its connection: an answer that waits
 * behind another one waits for us, not for the peer. The socket's own time-out would not do, because anything that the
 * peer sends restarts it.
 */
export function boundUnreadAnswers(server: FastifyInstance, { answerMs, checkMs }: UnreadBounds): void {
  /** Answers that are decided and not read, with the time of that first check. */
  const unread = new Map<ServerResponse, number | undefined>();
  function forget(this: ServerResponse): void {
    unread.delete(this);
  }
  server.addHook("onSend", (request, { raw }, payload, done) => {
    if (request.routeOptions.config?.longLived !== true) {
      unread.set(raw, undefined);
      raw.on("close", forget);
    }
    done(null, payload);
  });
  const look = () => {
    const nowMs = performance.now();
    for (const [answer, sinceMs] of unread) {
      const { socket } = answer;
      if (socket === null) continue;
      const boundMs = answerMs * Math.max(1, Math.ceil(socket.writableLength / megabyte));
      if (sinceMs === undefined) unread.set(answer, nowMs);
      else if (nowMs - sinceMs >= boundMs) socket.destroy();
    }
  };
  server.server.on("listening", () => {
    const timer = setInterval(look, checkMs).unref();
    server.server.once("close", () => clearInterval(timer));
  });
}
