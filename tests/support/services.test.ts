// The order in which services are looked for, and that a server of our own really runs and really ends.

import { spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { skipUnlessRequired } from "./missing-part.ts";
import { listens, startPrivatePostgres, startPrivateRedis } from "./private-server.ts";
import { createTestDatabase, findPostgres, findRedis, type ServiceSearch } from "./services.ts";

function nothingHere(overrides: Partial<ServiceSearch> = {}): Partial<ServiceSearch> & { lines: string[] } {
  const lines: string[] = [];
  return {
    environment: {},
    defaultUrls: ["postgres://default"],
    usable: async () => false,
    startLocal: async () => undefined,
    report: (line) => lines.push(line),
    lines,
    ...overrides,
  };
}

describe("looking for a service", () => {
  test("takes the one that the environment names before any other", async () => {
    const environment = { CLAUDEMESH_TEST_POSTGRES_URL: "postgres://named" };
    const found = await findPostgres(nothingHere({ environment, usable: async () => true }));
    expect(found).toMatchObject({ url: "postgres://named", origin: "environment" });
  });

  test("refuses to go on to another when the named one does not answer", async () => {
    const environment = { CLAUDEMESH_TEST_REDIS_URL: "redis://named" };
    const search = nothingHere({ environment, usable: async (url) => url !== "redis://named" });
    await expect(findRedis(search)).rejects.toThrow("CLAUDEMESH_TEST_REDIS_URL is set");
  });

  test("takes the default port before starting a server", async () => {
    const found = await findPostgres(nothingHere({ usable: async (url) => url === "postgres://default" }));
    expect(found).toMatchObject({ url: "postgres://default", origin: "default port" });
  });

  test("starts a server where none answers, and stops it when asked", async () => {
    let stopped = false;
    const stop = async () => {
      stopped = true;
    };
    const found = await findPostgres(nothingHere({ startLocal: async () => ({ port: 1234, stop }) }));
    expect(found).toMatchObject({ url: "postgres://postgres@127.0.0.1:1234/postgres", origin: "local binary" });
    await found?.stop();
    expect(stopped).toBe(true);
  });

  test("says in one line what is skipped where there is nothing", async () => {
    const search = nothingHere();
    expect(await findPostgres(search)).toBeUndefined();
    expect(search.lines).toHaveLength(1);
    expect(search.lines[0]).toContain("no PostgreSQL");
  });

  test("fails where there is nothing and services are required", async () => {
    const search = nothingHere({ environment: { CLAUDEMESH_REQUIRE_SERVICES: "1" } });
    await expect(findRedis(search)).rejects.toThrow("no Redis");
    expect(search.lines).toEqual([]);
  });
});

describe("a private server", () => {
  test("PostgreSQL answers on its own port until it is stopped, with its data after a restart", async (context) => {
    const ask = async (port: number, text: string): Promise<unknown> => {
      const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres` });
      try {
        await client.connect();
        return (await client.query<unknown[]>({ text, rowMode: "array" })).rows[0]?.[0];
      } catch {
        return undefined;
      } finally {
        await client.end();
      }
    };
    const answers = async (port: number) => (await ask(port, "SELECT 1")) === 1;
    const server = await startPrivatePostgres(answers);
    if (server === undefined) return skipUnlessRequired(context, "PostgreSQL's binaries are not installed");
    await ask(server.port, "CREATE TABLE kept AS SELECT 7 AS n");
    await server.restart("QUIT", 0);
    expect(await ask(server.port, "SELECT n FROM kept")).toBe(7);
    await server.stop();
    expect(await answers(server.port)).toBe(false);
  });

  test("Redis accepts connections on its own port until it is stopped", async (context) => {
    const server = await startPrivateRedis(listens);
    if (server === undefined) return skipUnlessRequired(context, "redis-server is not installed");
    expect(await listens(server.port)).toBe(true);
    await server.stop();
    expect(await listens(server.port)).toBe(false);
  });

  test("ends with the process that started it, even by SIGKILL", async (context) => {
    const owner = spawn(process.execPath, [fileURLToPath(new URL("./private-server-owner.ts", import.meta.url))], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(createInterface(owner.stdout), "line")) as [string];
    if (line === "none") return skipUnlessRequired(context, "redis-server is not installed");
    expect(await listens(Number(line))).toBe(true);
    owner.kill("SIGKILL");
    await once(owner, "exit");
    await expect.poll(() => listens(Number(line)), { timeout: 10_000 }).toBe(false);
  });
});

describe("the services of this machine", () => {
  test("Redis, where there is one, answers PING", async (context) => {
    const redis = await findRedis();
    if (redis === undefined) return skipUnlessRequired(context, "no Redis");
    expect(redis.url).toMatch(/^redis/);
    await redis.stop();
  });

  test("a test database exists until it is dropped, even while someone is connected", async (context) => {
    const database = await createTestDatabase("services");
    if (database === undefined) return skipUnlessRequired(context, "no PostgreSQL");
    const client = new pg.Client({ connectionString: database.url });
    const cutOff = new Promise((resolve) => client.on("error", resolve));
    await client.connect();
    const { rows } = await client.query<{ name: string }>("SELECT current_database() AS name");
    expect(rows[0]?.name).toMatch(/^claudemesh_test_services_/);
    await database.drop();
    await cutOff;
    const late = new pg.Client({ connectionString: database.url });
    await expect(late.connect()).rejects.toMatchObject({ code: "3D000" });
  });
});
