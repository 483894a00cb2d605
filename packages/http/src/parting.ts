// Closing a connection whose peer was refused while it may still be sending. The peer has some time to finish sending
// and to read the refusal; then it is cut off.
import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { MeshError } from "@claudemesh/protocol/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { refusalText } from "./refusal-text.ts";

export class Partings {
  readonly #lastMs: number;
  readonly #sockets = new Set<Socket>();

  /** `lastMs`: how long a peer may take to finish. */
  constructor(lastMs: number) {
    this.#lastMs = lastMs;
  }

  /**
   * If the connection closed together with the refusal of a body, the sender's next write would fail and the sender
   * would never read the answer. So the connection stays open, the rest of the body is discarded, and a sender that
   * goes on for too long is cut off.
   */
  letSenderFinish({ raw }: FastifyRequest, reply: FastifyReply): void {
    // The framework ends the connection for every error in a body, even when the body was read to its end.
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

  /**
   * For bytes that are not HTTP, headers beyond the bound, or a request that is too slow: one clear answer, then the
   * connection ends.
   */
  readonly refuseMalformed = (error: Error & { code?: string }, socket: Socket): void => {
    // With any other error no peer is waiting for HTTP: the connection is gone, or its TLS handshake never succeeded.
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

  /** For a server that is stopping and has waited long enough. */
  cutNow(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Returns a function that cancels the cut. */
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
