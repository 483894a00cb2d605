// How a connection is left that was told no while its peer may still be sending: the peer gets a while to finish and to
// read why, and is cut off then.
import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { MeshError } from "@claudemesh/protocol/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { refusalText } from "./refusal-text.ts";

export class Partings {
  readonly #lastMs: number;
  readonly #sockets = new Set<Socket>();

  /** `lastMs`: how long a peer may take. */
  constructor(lastMs: number) {
    this.#lastMs = lastMs;
  }

  /**
   * A connection that ends with the refusal of a body fails the sender's next write, and the sender never reads the answer.
   * So it stays open: what still comes is passed over, and a sender that goes on for too long is cut off.
   */
  letSenderFinish({ raw }: FastifyRequest, reply: FastifyReply): void {
    // The framework ends the connection for every error in a body, also in one that was read to its end.
    reply.removeHeader("connection");
    if (raw.complete || !hasBody(raw.headers)) return;
    const isLast = !reply.raw.shouldKeepAlive;
    reply.header("connection", "keep-alive");
    const { socket } = raw;
    const stay = this.#cutLater(socket);
    raw.once("close", () => {
      stay();
      if (isLast) socket.destroySoon();
    });
  }

  /** Bytes that are not HTTP, headers beyond the bound, or a request that is too slow: one clear answer, then the end. */
  readonly refuseMalformed = (error: Error & { code?: string }, socket: Socket): void => {
    // Whatever else fails has no peer that waits for HTTP: a connection that is gone, or one whose TLS never began.
    const isHttp = /^(HPE|ERR_HTTP)_/.test(error.code ?? "");
    if (!isHttp || !socket.writable) {
      socket.destroy();
      return;
    }
    const refusal =
      error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? new MeshError("request_timeout")
        : new MeshError("invalid_request", "This is not an HTTP request that the server can read.");
    socket.once("close", this.#cutLater(socket));
    socket.end(refusalText(refusal));
  };

  /** For a server that stops and has waited long enough. */
  cutNow(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Returns how to call it off. */
  #cutLater(socket: Socket): () => void {
    this.#sockets.add(socket);
    const cut = setTimeout(() => socket.destroy(), this.#lastMs);
    return () => {
      clearTimeout(cut);
      this.#sockets.delete(socket);
    };
  }
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
}
