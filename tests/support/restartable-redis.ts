// A Redis of our own that a test may take away and bring back at the same address. It keeps nothing over a restart.
import process from "node:process";
import { listens, type PrivateServer, startPrivateRedis } from "./private-server.ts";

export class RestartableRedis {
  readonly url: string;
  readonly #port: number;
  #server: PrivateServer | undefined;

  private constructor(server: PrivateServer) {
    this.#server = server;
    this.#port = server.port;
    this.url = `redis://127.0.0.1:${server.port}`;
  }

  /** Undefined where there is no redis-server; a failure where everything must run. */
  static async create(): Promise<RestartableRedis | undefined> {
    const server = await startPrivateRedis(listens);
    if (server !== undefined) return new RestartableRedis(server);
    if (process.env.CLAUDEMESH_REQUIRE_SERVICES === "1") throw new Error("there is no redis-server to start");
    process.stderr.write("tests that take Redis away are skipped: install redis-server\n");
    return undefined;
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
    this.#server = undefined;
  }

  async start(): Promise<void> {
    if (this.#server !== undefined) return;
    this.#server = await startPrivateRedis(listens, this.#port);
    if (this.#server === undefined) throw new Error(`Redis did not come back on port ${this.#port}`);
  }
}
