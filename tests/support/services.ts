// PostgreSQL and Redis for tests: the one the environment names, else the one on the default port, else one of our own
// from local binaries, else none and the tests that need it are skipped. A database per test file, dropped at its end.
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { userInfo } from "node:os";
import process from "node:process";
import pg from "pg";
import { type PrivateServer, startPrivatePostgres, startPrivateRedis } from "./private-server.ts";

export interface Service {
  url: string;
  /** Where it was found, for messages. */
  origin: "environment" | "default port" | "local binary";
  /** Ends what was started for us; a server that was there before stays. */
  stop(): Promise<void>;
}

export interface TestDatabase {
  url: string;
  /** Drops the database, ends the connections that are still open to it, and lets go of the server. */
  drop(): Promise<void>;
}

/** What the search depends on, so that its order can be tested. */
export interface ServiceSearch {
  environment: Record<string, string | undefined>;
  /** Tried in turn when the environment names none. */
  defaultUrls: string[];
  usable(url: string): Promise<boolean>;
  startLocal(): Promise<Pick<PrivateServer, "port" | "stop"> | undefined>;
  /** The one line about what is skipped. */
  report(line: string): void;
}

export async function findPostgres(search: Partial<ServiceSearch> = {}): Promise<Service | undefined> {
  const users = [...new Set(["postgres", userInfo().username])];
  return findService("PostgreSQL", "CLAUDEMESH_TEST_POSTGRES_URL", localPostgresUrl, {
    environment: process.env,
    defaultUrls: users.map((user) => `postgres://${encodeURIComponent(user)}@127.0.0.1:5432/postgres`),
    usable: canCreateDatabases,
    startLocal: () => startPrivatePostgres((port) => canCreateDatabases(localPostgresUrl(port))),
    report: printLine,
    ...search,
  });
}

export async function findRedis(search: Partial<ServiceSearch> = {}): Promise<Service | undefined> {
  return findService("Redis", "CLAUDEMESH_TEST_REDIS_URL", localRedisUrl, {
    environment: process.env,
    defaultUrls: [localRedisUrl(6379)],
    usable: answersPing,
    startLocal: () => startPrivateRedis((port) => answersPing(localRedisUrl(port))),
    report: printLine,
    ...search,
  });
}

/** Undefined where there is no PostgreSQL; `label` shows in the database's name. */
export async function createTestDatabase(label: string): Promise<TestDatabase | undefined> {
  const service = await findPostgres();
  if (service === undefined) return undefined;
  const name = `claudemesh_test_${label.replaceAll(/[^a-z0-9]/g, "_")}_${randomBytes(6).toString("hex")}`;
  await withAdmin(service.url, (admin) => admin.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`));
  const url = new URL(service.url);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    async drop() {
      await withAdmin(service.url, (admin) => admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
      await service.stop();
    },
  };
}

async function findService(
  label: string,
  variable: string,
  localUrl: (port: number) => string,
  search: ServiceSearch,
): Promise<Service | undefined> {
  const stop = async () => undefined;
  const named = search.environment[variable];
  if (named !== undefined && named !== "") {
    // A server that is named is the one to use; falling back to another would test something else.
    if (await search.usable(named)) return { url: named, origin: "environment", stop };
    throw new Error(`${variable} is set, but no usable ${label} answers there`);
  }
  for (const url of search.defaultUrls) {
    if (await search.usable(url)) return { url, origin: "default port", stop };
  }
  const server = await search.startLocal();
  if (server !== undefined) {
    return { url: localUrl(server.port), origin: "local binary", stop: () => server.stop() };
  }
  const advice = `no ${label}: set ${variable}, run one on the default port, or install its binaries`;
  if (search.environment.CLAUDEMESH_REQUIRE_SERVICES === "1") throw new Error(advice);
  search.report(`tests that need it are skipped: ${advice}`);
  return undefined;
}

function localPostgresUrl(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}

function localRedisUrl(port: number): string {
  return `redis://127.0.0.1:${port}`;
}

async function canCreateDatabases(url: string): Promise<boolean> {
  try {
    const { rows } = await withAdmin(url, (admin) =>
      admin.query<{ able: boolean }>(
        "SELECT rolsuper OR rolcreatedb AS able FROM pg_roles WHERE rolname = current_user",
      ),
    );
    return rows[0]?.able === true;
  } catch {
    return false;
  }
}

async function withAdmin<R>(url: string, body: (admin: pg.Client) => Promise<R>): Promise<R> {
  const admin = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000 });
  await admin.connect();
  try {
    return await body(admin);
  } finally {
    await admin.end();
  }
}

/** Speaks just enough of the protocol to authenticate and to hear PONG. */
function answersPing(address: string): Promise<boolean> {
  const url = new URL(address);
  const secret = [url.username, url.password].filter((part) => part !== "").map(decodeURIComponent);
  const login = url.password === "" ? "" : `AUTH ${secret.join(" ")}\r\n`;
  return new Promise((resolve) => {
    const socket = connect({ host: url.hostname, port: Number(url.port || 6379) });
    const answer = (usable: boolean) => {
      socket.destroy();
      resolve(usable);
    };
    let heard = "";
    socket.setTimeout(2000, () => answer(false));
    socket.on("error", () => answer(false));
    socket.on("close", () => answer(false));
    socket.on("connect", () => socket.write(`${login}PING\r\n`));
    socket.on("data", (chunk) => {
      heard += chunk.toString("latin1");
      if (heard.includes("+PONG\r\n")) answer(true);
      else if (heard.includes("-") && heard.endsWith("\r\n")) answer(false);
    });
  });
}

function printLine(line: string): void {
  process.stderr.write(`${line}\n`);
}
