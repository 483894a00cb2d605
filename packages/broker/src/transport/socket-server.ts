// Takes WebSocket upgrades at one path, bounds how many sockets there are, ends those that went silent or whose member
// was revoked, and renews the presence of the others.
import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { refusalText } from "@claudemesh/http/refusal-text";
import { MeshError } from "@claudemesh/protocol/errors";
import { limits } from "@claudemesh/protocol/messages/limits";
import { connectPath } from "@claudemesh/protocol/wire/frames";
import { WebSocket, WebSocketServer } from "ws";
import type { BrokerContext } from "../context.ts";
import type { RunOperation } from "../operations/run-operation.ts";
import { Connection } from "./connection.ts";
import { PresenceKeeper } from "./presence-keeper.ts";

const connectionsMax = 10_000;
const aliveIntervalMs = 15_000;
/** How long a peer may take to answer a close frame, before its socket is cut. */
const closing = { closeTimeout: 10_000 };
/** How long the refusal of an upgrade may wait behind answers that the peer has not read. */
const refusalMsMax = 5_000;

export type SocketServer = {
  /** No further upgrades; open sockets hear what is in flight and then that the broker is stopping. */
  readonly stop: () => void;
  /** Cuts the sockets that have not closed. */
  readonly terminate: () => void;
};

export function attachSocketServer(http: Server, broker: BrokerContext, run: RunOperation): SocketServer {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.largeFrameBytes,
    perMessageDeflate: false,
    ...closing,
    WebSocket: ReasonedSocket,
  });
  const connections = new Set<Connection>();
  const presence = new PresenceKeeper({ ...broker, store: () => broker.messages.presence });
  let stopping = false;

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const refusal = judgeUpgrade(request, { stopping, connected: connections.size });
    if (refusal !== undefined) {
      refuseUpgrade(socket, refusal);
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const connection = new Connection({ webSocket, stream: socket as Socket }, broker, run, presence);
      connections.add(connection);
      webSocket.once("close", () => connections.delete(connection));
    });
  };
  http.on("upgrade", onUpgrade);
  const aliveTimer = setInterval(() => {
    for (const connection of connections) connection.checkAlive();
    void presence.renew();
    cutRevoked(broker, connections).catch((error: unknown) => {
      broker.log.error({ event: "membership_check_failed", err: error }, "looking for revoked members failed");
    });
  }, aliveIntervalMs);

  return {
    stop: () => {
      stopping = true;
      clearInterval(aliveTimer);
      presence.stop();
      for (const connection of connections) connection.closeForStop();
    },
    terminate: () => {
      for (const connection of connections) connection.terminate();
    },
  };
}

/** A member that was revoked through another broker is cut off here too, also where the signal was lost. */
async function cutRevoked(broker: BrokerContext, connections: Iterable<Connection>): Promise<void> {
  const byMesh = new Map<string, Set<string>>();
  for (const { member } of connections) {
    if (member === undefined) continue;
    byMesh.set(member.meshId, (byMesh.get(member.meshId) ?? new Set()).add(member.pubkey));
  }
  for (const [meshId, pubkeys] of byMesh) {
    for (const pubkey of await broker.members.findRevoked(meshId, [...pubkeys])) broker.connections.cut(meshId, pubkey);
  }
}

function judgeUpgrade(
  { url = "" }: IncomingMessage,
  { stopping, connected }: { readonly stopping: boolean; readonly connected: number },
): MeshError | undefined {
  const [path] = url.split("?", 1);
  if (path !== connectPath) return new MeshError("not_found", `There is no WebSocket at ${path}.`);
  if (stopping) return new MeshError("stopping");
  return connected < connectionsMax ? undefined : new MeshError("busy", undefined, { limit: connectionsMax });
}

function refuseUpgrade(socket: Duplex, refusal: MeshError): void {
  // An upgraded socket has no other listener, and a peer that resets it must not end the process.
  socket.on("error", () => socket.destroy());
  // Nor has it a reader: what is left unread, or a peer that keeps its side open, would keep it, and every stop, for ever.
  socket.resume();
  socket.once("finish", () => socket.destroy());
  const cut = setTimeout(() => socket.destroy(), refusalMsMax);
  socket.once("close", () => clearTimeout(cut));
  socket.end(refusalText(refusal));
}

/** Why the library closes a connection itself, by the code of its close frame. */
const closeReasons: Readonly<Record<number, string>> = {
  1002: "the frame breaks the rules of WebSocket",
  1007: "invalid_utf8",
  1008: "the message comes in too many parts",
  1009: "the frame is too large",
};

/** A WebSocket whose close frames always give a reason, also those that the library sends for frames it could not read. */
class ReasonedSocket extends WebSocket {
  /** The answer to a peer's close frame comes with that frame's own code and reason, or with neither. */
  override close(code?: number, reason?: string | Buffer): void {
    super.close(
      code,
      reason ?? (code === undefined ? undefined : (closeReasons[code] ?? "the connection cannot go on")),
    );
  }
}
