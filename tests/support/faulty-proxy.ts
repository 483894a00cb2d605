// A TCP proxy with the faults of a network: it can fall silent, so that connections stay open and nothing passes any
// more, it can be cut, and it can break a connection at a message of one's choice, before or after that has reached the server.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export type FaultyProxy = {
  readonly url: string;
  readonly fallSilent: () => void;
  /** Breaks every connection, and every new one until `speak`. */
  readonly cut: () => void;
  /** For new connections; those that fell silent stay so. */
  readonly speak: () => void;
  /**
   * Once, at the next message of a client that contains the marker. After: the answers are lost, and it breaks at the first
   * that contains the other marker, by which the server has done what it was asked for; without one at the first at all.
   */
  readonly breakAt: (marker: string, when: "before" | "after", answered?: string) => void;
  /** Once, as above, but unnoticed: the message never arrives, and the connection stays. */
  readonly swallowAt: (marker: string) => void;
  /** Connections that came, and messages at which it made a fault. */
  readonly seen: { readonly connections: number; readonly strikes: number };
  readonly stop: () => void;
};

type Fault = { readonly marker: string; readonly when: "before" | "after" | "never"; readonly answered: string };

/** `route`: where each new connection goes, for several servers behind one address; without it, to the target. */
export async function startFaultyProxy(targetUrl: string, route = () => targetUrl): Promise<FaultyProxy> {
  const sockets = new Set<Socket>();
  let silent = false;
  let isCut = false;
  let fault: Fault | undefined;
  const seen = { connections: 0, strikes: 0 };
  const server = createServer((client) => {
    seen.connections += 1;
    if (isCut) {
      client.destroy();
      return;
    }
    const target = new URL(route());
    const upstream = connect(Number(target.port), target.hostname);
    const breakBoth = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", breakBoth);
      socket.on("close", () => {
        breakBoth();
        sockets.delete(socket);
      });
    }
    if (silent) return;
    let lostUntil: string | undefined;
    client.on("data", (chunk) => {
      const struck = fault !== undefined && chunk.includes(fault.marker) ? fault : undefined;
      if (struck !== undefined) {
        fault = undefined;
        seen.strikes += 1;
      }
      if (struck?.when === "before") breakBoth();
      else if (struck?.when !== "never") upstream.write(chunk);
      if (struck?.when === "after") lostUntil = struck.answered;
    });
    upstream.on("data", (chunk) => {
      if (lostUntil === undefined) client.write(chunk);
      else if (chunk.includes(lostUntil)) breakBoth();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const url = new URL(targetUrl);
  url.hostname = "127.0.0.1";
  url.port = String(typeof address === "object" ? address?.port : 0);
  return {
    url: url.href,
    fallSilent: () => {
      silent = true;
      for (const socket of sockets) socket.removeAllListeners("data").pause();
    },
    cut: () => {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    speak: () => {
      silent = false;
      isCut = false;
    },
    breakAt: (marker, when, answered = "") => {
      fault = { marker, when, answered };
    },
    swallowAt: (marker) => {
      fault = { marker, when: "never", answered: "" };
    },
    seen,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
