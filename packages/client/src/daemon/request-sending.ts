// Whether any byte of a request may have reached the daemon.
import type { ClientRequest } from "node:http";

/** Nothing of a request is written before its socket is connected; a kept-alive socket is connected already. */
export function watchSending(request: ClientRequest): () => boolean {
  let sent = false;
  request.on("socket", (socket) => {
    if (!socket.connecting) {
      sent = true;
      return;
    }
    socket.once("connect", () => {
      sent = true;
    });
  });
  return () => sent;
}
