// A process that starts a Redis of its own, prints its port and waits to be killed. Run by services.test.ts.
import { connect } from "node:net";
import process from "node:process";
import { startPrivateRedis } from "./private-server.ts";

const server = await startPrivateRedis(
  (port) =>
    new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.destroy();
        resolve(true);
      });
      socket.on("error", () => resolve(false));
    }),
);
process.stdout.write(`${server?.port ?? "none"}\n`);
if (server !== undefined) setInterval(() => undefined, 60_000);
