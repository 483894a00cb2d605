// A process that starts a Redis of its own, prints its port and waits to be killed. Run by services.test.ts.
import process from "node:process";
import { listens, startPrivateRedis } from "./private-server.ts";

const server = await startPrivateRedis(listens);
process.stdout.write(`${server?.port ?? "none"}\n`);
if (server !== undefined) setInterval(() => undefined, 60_000);
