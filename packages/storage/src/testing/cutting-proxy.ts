// A TCP proxy that misbehaves once, at the first client message that contains a marker: the network's share of faults.
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export type ProxyFault =
  /** The message never reaches the server, and the connection breaks. */
  | "lose_message"
  /** The server gets and answers it, and the connection breaks before the answer arrives. */
  | "lose_answer"
  /** The message never arrives and nobody notices. */
  | "swallow";

export interface CuttingProxy {
  url: string;
  /** How often the fault struck. */
  readonly strikes: number;
  readonly connections: number;
}

export async function startCuttingProxy(targetUrl: string, marker: string, fault: ProxyFault): Promise<CuttingProxy> {
  const target = new URL(targetUrl);
  const sockets: Socket[] = [];
  const seen = { strikes: 0, connections: 0 };
  const server = createServer((client) => {
    seen.connections += 1;
    const upstream = connect(Number(target.port || 5432), target.hostname);
    sockets.push(client, upstream);
    const breakBoth = () => {
      client.destroy();
      upstream.destroy();
    };
    let loseAnswer = false;
    client.on("data", (chunk) => {
      if (seen.strikes > 0 || !chunk.includes(marker)) {
        upstream.write(chunk);
        return;
      }
      seen.strikes += 1;
      if (fault === "lose_message") breakBoth();
      if (fault === "lose_answer") {
        loseAnswer = true;
        upstream.write(chunk);
      }
    });
    upstream.on("data", (chunk) => (loseAnswer ? breakBoth() : client.write(chunk)));
    for (const socket of [client, upstream]) socket.on("error", breakBoth).on("close", breakBoth);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const url = new URL(targetUrl);
  url.hostname = "127.0.0.1";
  url.port = String(typeof address === "object" ? address?.port : 0);
  return {
    url: url.href,
    get strikes() {
      return seen.strikes;
    },
    get connections() {
      return seen.connections;
    },
  };
}
