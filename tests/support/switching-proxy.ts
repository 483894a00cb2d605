// One address in front of several brokers, as a load balancer has it: connections go to the one that is chosen, and those
// that stood break when another is.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type SwitchingProxy = {
  readonly url: string;
  readonly switchTo: (targetUrl: string) => void;
  readonly stop: () => void;
};

export async function startSwitchingProxy(firstUrl: string): Promise<SwitchingProxy> {
  const sockets = new Set<Socket>();
  let target = new URL(firstUrl);
  const breakAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    const pair = [client, upstream];
    for (const socket of pair) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        for (const each of pair) each.destroy();
      });
    }
    client.pipe(upstream);
    upstream.pipe(client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    switchTo: (targetUrl) => {
      target = new URL(targetUrl);
      breakAll();
    },
    stop: () => {
      breakAll();
      server.close();
    },
  };
}
