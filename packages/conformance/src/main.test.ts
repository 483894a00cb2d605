// The command as its users meet it: words, exit codes, table and JSON. The areas here are made up or not reached.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { Miss, Skipped } from "./frame/endings.ts";
import { type Area, defineArea, scenario } from "./frame/scenario.ts";
import { main } from "./main.ts";

const oddArea = defineArea<{ tidied: number }>({
  name: "odd",
  summary: "made up",
  options: [{ flag: "url", value: "<url>", help: "where" }],
  scenarios: [
    scenario("1.1", "keeps", "it keeps its word", async () => undefined),
    scenario("1.5", "misses", "it is wrong", async () => {
      throw new Miss({ expected: "status 200", got: "status 201", request: "POST /messages\n{}" });
    }),
    scenario("1.5", "throws", "it stumbles", async () => {
      throw new Error("unforeseen");
    }),
    scenario("1.10", "waits", "it never ends", () => new Promise<void>(() => undefined)),
    scenario("2.2", "skips", "it needs more", async () => {
      throw new Skipped("needs --url");
    }),
  ],
  open: async () => ({ tidied: 0 }),
  tidy: async (world) => {
    world.tidied++;
  },
  close: async () => undefined,
});

async function run(args: readonly string[], areas?: readonly Area[]) {
  let out = "";
  let err = "";
  const output = {
    out: (text: string) => {
      out += `${text}\n`;
    },
    err: (text: string) => {
      err += `${text}\n`;
    },
  };
  const code = await (areas === undefined ? main(args, output) : main(args, output, areas));
  return { code, out, err };
}

const runOdd = (...args: readonly string[]) => run(["odd", ...args], [oddArea]);

describe("claudemesh-conformance", () => {
  test("says how it is used, and ends with 2 where nothing was asked", async () => {
    expect(await run(["--help"])).toMatchObject({
      code: 0,
      out: expect.stringContaining("Usage: claudemesh-conformance broker|daemon"),
    });
    expect((await run(["broker", "--help"])).out).toContain("--admin-token-file <path>");
    expect((await run([])).code).toBe(2);
  });

  test("lists what it would try, by section, as text and as JSON", async () => {
    const { code, out } = await run(["broker", "--list", "--only", "1.5"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^1\.5 {2}the broker's accept\n {2}1\.5-accepted: /);
    const listed = JSON.parse((await run(["daemon", "--list", "--json"])).out) as { scenarios: { section: string }[] };
    expect(listed.scenarios.length).toBeGreaterThan(90);
  });

  test("every scenario has a section with a title, an id that begins with it, and a sentence", async () => {
    for (const area of ["broker", "daemon"]) {
      const { scenarios } = JSON.parse((await run([area, "--list", "--json"])).out) as {
        scenarios: { id: string; section: string; says: string }[];
      };
      const text = (await run([area, "--list"])).out;
      for (const { id, section, says } of scenarios) {
        expect(id).toMatch(new RegExp(`^${section}-[a-z0-9-]+$`));
        expect(says).toMatch(/^[^\n]{10,140}[^.\n]$/);
        expect(text).toContain(`  ${id}: ${says}`);
      }
    }
  });

  test("takes a section for those below it and not for those that begin alike", async () => {
    const ids = async (only: string) => (await runOdd("--list", "--only", only)).out.match(/(?<=^ {2})[\d.]+-\w+/gm);
    expect(await ids("1.1")).toEqual(["1.1-keeps"]);
    expect(await ids("1")).toEqual(["1.1-keeps", "1.5-misses", "1.5-throws", "1.10-waits"]);
    expect(await ids("1.5-misses,2.2")).toEqual(["1.5-misses", "2.2-skips"]);
  });

  test("ends with 2 over words that it does not know", async () => {
    for (const args of [
      ["spaces"],
      ["broker", "--colour"],
      ["broker", "extra"],
      ["broker", "--only", "9.9"],
      ["broker", "--list", "--only", "1.4"],
    ]) {
      expect(await run(args)).toMatchObject({ code: 2, out: "", err: expect.stringMatching(/./) });
    }
    expect((await runOdd("--timeout-s", "0")).code).toBe(2);
    expect((await run(["broker", "--url", "a", "--url", "b"])).err).toContain("--url is given more than once");
  });

  test("ends with 2 where it cannot begin, and says what is missing", async () => {
    expect((await run(["broker"])).err).toContain("--url <url> is missing");
    expect((await run(["daemon"])).err).toContain("--socket <path>");
    expect((await run(["daemon", "--url", "http://127.0.0.1:1"])).err).toContain("--token-file");
    const unreachable = await run(["broker", "--url", "http://127.0.0.1:1", "--json"]);
    expect(unreachable.code).toBe(2);
    expect(JSON.parse(unreachable.out)).toMatchObject({
      error: "cannot_begin",
      message: expect.stringContaining("Nothing answers"),
    });
  });

  test("ends with 2 where something else answers", async () => {
    const server = createServer((_request, response) => response.writeHead(404).end("{}"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { code, err } = await run(["broker", "--url", url, "--admin-token", "x"]);
    expect(code).toBe(2);
    expect(err).toMatch(/could not be set up\. Expected status 201, got status 404/);
    expect(err).not.toContain("Bearer x");
  });

  test("prints a table by section, then each miss with what was expected, what came and the request", async () => {
    const { code, out } = await runOdd("--timeout-s", "1");
    expect(code).toBe(1);
    expect(out).toMatch(/^1\.1 +identity of a send +1 +0 +0$/m);
    expect(out).toMatch(/^1\.5 +the broker's accept +0 +2 +0$/m);
    expect(out.indexOf("1.10 ")).toBeGreaterThan(out.indexOf("1.5 "));
    expect(out).toContain("  needs --url: 2.2-skips");
    expect(out).toContain(
      "FAILED 1.5-misses: it is wrong\n  expected: status 200\n  got:      status 201\n  request:  POST /messages\n            {}",
    );
    expect(out).toMatch(/FAILED 1\.5-throws[\s\S]*Error: unforeseen/);
    expect(out).toMatch(/FAILED 1\.10-waits[\s\S]*an end within 1 s/);
    expect(out).toMatch(/odd: 1 passed, 3 failed, 1 skipped\n$/);
  });

  test("prints the same as one JSON value", async () => {
    const { code, out } = await runOdd("--json", "--only", "1.5-misses", "--only", "2.2");
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      area: "odd",
      passed: 0,
      failed: 1,
      skipped: 1,
      sections: [
        { section: "1.5", failed: 1 },
        { section: "2.2", skipped: 1 },
      ],
      scenarios: [
        { id: "1.5-misses", outcome: "failed", miss: { expected: "status 200", got: "status 201" } },
        { id: "2.2-skips", outcome: "skipped", reason: "needs --url" },
      ],
    });
  });

  test("ends with 0 where everything that ran passed", async () => {
    expect((await runOdd("--only", "1.1,2.2")).code).toBe(0);
  });
});
