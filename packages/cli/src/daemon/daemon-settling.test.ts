// When a start has settled: what is waited for where a daemon knows several brokers.
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { meshPaths } from "@claudemesh/client/home";
import { expect, it, onTestFinished } from "vitest";
import { describeBroker, isHopeless, isSettled, waitUntilSettled } from "./daemon-settling.ts";

it("asks a daemon again that could not answer just now, and calls no start failed for it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cm-settling-"));
  const answers = [
    [503, { error: "storage_unavailable", message: "The store cannot be reached.", retryable: true }],
    [200, { broker: { state: "online" } }],
  ] as const;
  let asked = 0;
  const daemon = createServer((_request, response) => {
    const [status, body] = answers[Math.min(asked++, 1)] ?? answers[1];
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  onTestFinished(() => {
    daemon.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const paths = { ...meshPaths(folder, "acme"), sock: join(folder, "sock") };
  daemon.listen(paths.sock);
  await once(daemon, "listening");
  expect(await waitUntilSettled(paths, () => false)).toMatchObject({ broker: { state: "online" } });
});

it("names the command that mends what waiting does not", () => {
  const away = { state: "offline", reason: "unreachable", detail: "refused" } as const;
  const other = { state: "offline", reason: "not_our_broker", detail: "it has another key" } as const;
  const settled = (broker: typeof away | typeof other, isFormerMember = false) => ({ broker, isFormerMember });
  expect(describeBroker(settled(away))).not.toContain("claudemesh");
  const formerly = describeBroker(settled(away, true));
  expect(formerly).toContain("claudemesh daemon remint");
  expect(formerly, "of sends that are refused").not.toContain("kept");
  expect([isHopeless(settled(away)), isHopeless(settled(away, true))]).toEqual([false, true]);
  expect(describeBroker(settled(other))).toContain("claudemesh mesh trust-broker");
});

it("takes the first word of the only broker, and asks all of several before it says that none is there", () => {
  const away = { state: "offline", reason: "unreachable" } as const;
  expect(isSettled({ state: "connecting" }, 100)).toBe(false);
  expect(isSettled({ state: "online" }, 100)).toBe(true);
  expect(isSettled({ ...away, others: [] }, 100)).toBe(true);
  const several = { ...away, others: ["http://127.0.0.1:2", "http://127.0.0.1:3"] };
  expect(isSettled(several, 1_900)).toBe(false);
  expect(isSettled(several, 4_000)).toBe(true);
  expect(isSettled({ ...away, others: Array.from({ length: 15 }, (_, n) => `http://127.0.0.1:${n}`) }, 12_000)).toBe(
    true,
  );
  expect(isSettled({ state: "connecting" }, 12_000)).toBe(true);
});
