// A whole daemon in a temporary home, called over its real sockets. The broker is a scripted link, or none at all.
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureMeshDir, type MeshPaths, meshPaths, writeMeshConfig } from "@claudemesh/client/home";
import type { Link, LinkOptions } from "@claudemesh/client/internal/link-contract";
import { generateMemberKeys, type MemberKeys, writeKeyFile } from "@claudemesh/client/keys";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { onTestFinished } from "vitest";
import { type RunningDaemon, type StartOptions, startDaemon } from "../start.ts";
import { expectDescribed } from "./described-answers.ts";
import { ScriptedLink } from "./scripted-link.ts";

export type TestHome = { readonly home: string; readonly paths: MeshPaths; readonly keys: MemberKeys };

/** Where to leave what has to be undone, last first; the end of the test where nothing is said. */
export type WhenDone = (step: () => void | Promise<void>) => void;

export function temporaryHome(whenDone: WhenDone = onTestFinished, keys: MemberKeys = generateMemberKeys()): TestHome {
  const home = mkdtempSync(join(tmpdir(), "cm-"));
  whenDone(() => rmSync(home, { recursive: true, force: true }));
  const paths = meshPaths(home, "acme");
  ensureMeshDir(paths);
  writeKeyFile(paths.keypair, keys);
  // Nothing listens on port 1.
  const broker = "ws://127.0.0.1:1";
  writeMeshConfig(paths, { id: "01890000-0000-7000-8000-000000000000", name: "acme", broker, member_name: "me" });
  return { home, paths, keys };
}

export type HttpAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers field by field
  readonly body: any;
};

export type CallOptions = {
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** Sent as it is. */
  readonly raw?: string | Uint8Array;
  readonly json?: unknown;
  /** Over TCP instead of the socket. */
  readonly port?: number;
};

export type TestDaemon = TestHome & {
  readonly daemon: RunningDaemon;
  readonly link: ScriptedLink;
  readonly call: (method: string, path: string, options?: CallOptions) => Promise<HttpAnswer>;
  readonly send: (json: unknown, headers?: CallOptions["headers"]) => Promise<HttpAnswer>;
  /** A second connection to the outbox, as another process would have. */
  readonly outboxDb: () => Sqlite;
  readonly rowCount: () => number;
};

export type TestDaemonOptions = Partial<StartOptions> & { readonly at?: TestHome; readonly whenDone?: WhenDone };

export async function startTestDaemon(options: TestDaemonOptions = {}): Promise<TestDaemon> {
  const { at: givenHome, whenDone = onTestFinished, ...startOptions } = options;
  const at = givenHome ?? temporaryHome(whenDone);
  const link = new ScriptedLink();
  const connect = (linkOptions: LinkOptions): Link => {
    link.options = linkOptions;
    return link;
  };
  const daemon = await startDaemon({ home: at.home, mesh: "acme", env: {}, connect, ...startOptions });
  const agent = new Agent({ keepAlive: true });
  const databases: Sqlite[] = [];
  whenDone(async () => {
    agent.destroy();
    for (const db of databases) db.close();
    await daemon.stop();
  });
  const call = async (method: string, path: string, callOptions: CallOptions = {}) => {
    const answer = await callHttp(agent, at.paths.sock, method, path, callOptions);
    expectDescribed(method, path, answer.status, answer.body);
    return answer;
  };
  const outboxDb = () => {
    const db = databases[0] ?? openSqlite({ path: at.paths.outboxDb, mustExist: true });
    databases[0] = db;
    return db;
  };
  return {
    ...at,
    daemon,
    link,
    call,
    send: (json, headers = {}) => call("POST", "/v1/send", { json, headers }),
    outboxDb,
    rowCount: () => outboxDb().sql<{ rows: number }>("SELECT count(*) AS rows FROM outbox").get()?.rows ?? -1,
  };
}

export function callHttp(
  agent: Agent,
  socketPath: string,
  method: string,
  path: string,
  { headers = {}, raw, json, port }: CallOptions,
): Promise<HttpAnswer> {
  const payload = raw ?? (json === undefined ? undefined : JSON.stringify(json));
  const target = port === undefined ? { socketPath, agent } : { host: "127.0.0.1", port };
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        ...target,
        method,
        path,
        headers: { ...(payload === undefined ? {} : { "content-type": "application/json" }), ...headers },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          const body = text === "" ? undefined : JSON.parse(text);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
        });
      },
    );
    request.on("error", reject);
    request.end(payload);
  });
}
