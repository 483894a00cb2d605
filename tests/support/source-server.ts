// Serves the workspace's sources to a browser as they are, but for their types, with every import turned into a path on
// this server; beside them a page, and an ear for what the page reports.
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createRequire, stripTypeScriptTypes } from "node:module";
import type { AddressInfo } from "node:net";
import { dirname, join, relative, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

export class SourceServer {
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** `post` answers what the page posts to a path. */
  static start(page: string, post: (path: string, body: unknown) => Promise<unknown>): Promise<SourceServer> {
    const server = createServer(async (request, response) => {
      const path = new URL(request.url ?? "/", "http://127.0.0.1").pathname;
      if (request.method === "POST") {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify((await post(path, JSON.parse(await bodyOf(request)) as unknown)) ?? null));
      } else if (path === "/") {
        response.setHeader("content-type", "text/html");
        response.end(page);
      } else if (path === "/favicon.ico") {
        response.writeHead(404).end();
      } else {
        response.setHeader("content-type", "text/javascript");
        response.end(moduleText(join(root, path)));
      }
    });
    return new Promise((started) => server.listen(0, "127.0.0.1", () => started(new SourceServer(server))));
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** As a browser loads it. */
function moduleText(file: string): string {
  const text = readFileSync(file, "utf8");
  const code = file.endsWith(".ts") ? stripTypeScriptTypes(text) : text;
  return code.replaceAll(/(\sfrom ")([^"\n]+)(";?)$/gm, (_, before: string, name: string, after: string) => {
    const target = name.startsWith(".") ? join(dirname(file), name) : createRequire(file).resolve(name);
    return `${before}/${relative(root, target)}${after}`;
  });
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
