// What of an address may appear in a log, a terminal or the output of a script.
import { createServer } from "node:net";
import { RedisConnection } from "@claudemesh/messages/redis";
import { describe, expect, onTestFinished, test } from "vitest";
import { hidingPasswordOf, withoutSecret } from "./shown-address.ts";

describe("an address", () => {
  test.each([
    ["postgres://mesh:hunter2@db:5433/mesh", "postgres://db:5433/mesh"],
    ["postgres://db/mesh?user=mesh&password=hunter2", "postgres://db/mesh"],
    ["postgres://me:hunter2@ss@db/mesh", "postgres://db/mesh"],
    ["postgres:///mesh?host=/run/postgresql&password=hunter2", "postgres:///mesh"],
    ["rediss://:hunter2@cache:6380/1?password=hunter2", "rediss://cache:6380/1"],
    ["postgres://db/mesh#hunter2", "postgres://db/mesh"],
    ["postgres://[::1]:5432/mesh", "postgres://[::1]:5432/mesh"],
    ["postgres://db/mesh", "postgres://db/mesh"],
    ["sqlite:./broker.db", "sqlite:./broker.db"],
  ])("%s is shown as %s", (text, shown) => {
    expect(withoutSecret(text)).toBe(shown);
  });

  test.each([
    "postgres://mesh:hunt/er2@db/mesh",
    "postgres://mesh:hunt#er2@db/mesh",
    // These read as the host mesh with the port 1.
    "postgres://mesh:1/hunter2@db/mesh",
    "postgres://mesh:1?hunter2@db/mesh",
    "postgres://mesh:1#hunter2@db/mesh",
    "postgres://mesh:hunter2",
    "mesh:hunter2@db/mesh",
    "host=db user=mesh password=hunter2",
  ])("%s is not shown at all", (text) => {
    expect(withoutSecret(text)).toBeUndefined();
  });
});

describe("an error of a server", () => {
  test("that quotes the command which it does not know loses the password, and no other is touched", async () => {
    // Redis before 6 answers so to the first words of a client.
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (words) => {
        const quoted = words.toString().replaceAll("\r\n", " ");
        socket.write(`-ERR unknown command, with args beginning with: ${quoted}\r\n`);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const url = `redis://:hunter%2F2@127.0.0.1:${port}`;
    const problem = await new Promise<unknown>((onProblem) => {
      const redis = new RedisConnection({ url, name: "test", onProblem });
      onTestFinished(() => redis.close());
    });
    expect((problem as Error).message).toContain("hunter/2");
    const shown = hidingPasswordOf(url)(problem) as Error;
    expect(shown.message).toContain("unknown command");
    expect(`${shown.message} ${shown.stack}`).not.toContain("hunter");
    const other = new Error("connect ECONNREFUSED");
    expect(hidingPasswordOf(url)(other)).toBe(other);
    expect(hidingPasswordOf("redis://cache")(problem)).toBe(problem);
  });
});
