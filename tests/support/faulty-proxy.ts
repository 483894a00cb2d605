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
  /** Once, at the next message of a client that contains the marker. */
  readonly breakAt: (marker: string, when: "before" | "after") => void;
  /** Once, as above, but nobody notices: the message never arrives, and the connection stays. */
  readonly swallowAt: (marker: string) => void;
  /** Connections that came, and messages at which it did as it was told. */
  readonly seen: { readonly connections: number; readonly strikes: number };
  readonly stop: () => void;
};

/** `route`: where each new connection goes, for several servers behind one address; to the target unless told. */
export async function startFaultyProxy(targetUrl: string, route = () => targetUrl): Promise<FaultyProxy> {
  const sockets = new Set<Socket>();
  let silent = false;
  let isCut = false;
  let fault: { readonly marker: string; readonly when: "before" | "after" | "never" } | undefined;
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
    let loseAnswer = false;
    client.on("data", (chunk) => {
      const struck = fault !== undefined && chunk.includes(fault.marker) ? fault.when : undefined;
      if (struck !== undefined) {
        fault = undefined;
        seen.strikes += 1;
      }
      if (struck === "before") breakBoth();
      else if (struck !== "never") upstream.write(chunk);
      loseAnswer ||= struck === "after";
    });
    upstream.on("data", (chunk) => (loseAnswer ? breakBoth() : client.write(chunk)));
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
    breakAt: (marker, when) => {
      fault = { marker, when };
    },
    swallowAt: (marker) => {
      fault = { marker, when: "never" };
    },
    seen,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
