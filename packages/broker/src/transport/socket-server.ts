// Takes WebSocket upgrades at one path, bounds how many sockets there are, and ends those that went silent.
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { limits } from "@claudemesh/protocol/messages/limits";
import { connectPath } from "@claudemesh/protocol/wire/frames";
import { WebSocketServer } from "ws";
import type { BrokerContext } from "../context.ts";
import type { RunOperation } from "../operations/run-operation.ts";
import { Connection } from "./connection.ts";

const connectionsMax = 10_000;
const aliveIntervalMs = 15_000;

export type SocketServer = {
  /** No further upgrades; open sockets hear what is in flight and then that the broker is stopping. */
  readonly stop: () => void;
  /** Cuts the sockets that have not closed. */
  readonly terminate: () => void;
};

export function attachSocketServer(http: Server, broker: BrokerContext, run: RunOperation): SocketServer {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.frameBytes,
    perMessageDeflate: false,
    // The strict reader checks UTF-8 itself, and once is enough.
    skipUTF8Validation: true,
  });
  const connections = new Set<Connection>();
  let stopping = false;

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const path = (request.url ?? "").split("?", 1)[0];
    const full = stopping || connections.size >= connectionsMax;
    if (path !== connectPath || full) {
      refuseUpgrade(socket, path === connectPath ? "503 Service Unavailable" : "404 Not Found");
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const connection = new Connection(webSocket, broker, run);
      connections.add(connection);
      webSocket.once("close", () => connections.delete(connection));
    });
  };
  http.on("upgrade", onUpgrade);
  const aliveTimer = setInterval(() => {
    for (const connection of connections) connection.checkAlive();
  }, aliveIntervalMs);

  return {
    stop: () => {
      stopping = true;
      clearInterval(aliveTimer);
      for (const connection of connections) connection.closeForStop();
    },
    terminate: () => {
      for (const connection of connections) connection.terminate();
    },
  };
}

function refuseUpgrade(socket: Duplex, status: string): void {
  // An upgraded socket has no other listener, and a peer that resets it must not end the process.
  socket.on("error", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}
