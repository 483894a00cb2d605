import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const main = fileURLToPath(new URL("./main.ts", import.meta.url));
const sim = (...words: string[]) => spawnSync(process.execPath, [main, ...words], { encoding: "utf8" });

test("a run says how much it did, and its hash", () => {
  const { status, stdout } = sim("--seed", "4", "--hours", "1", "--json");
  expect(status).toBe(0);
  expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toMatchObject({ seed: 4, hours: 1, violation: null });
});

test("words that mean nothing are wrong usage", () => {
  expect(sim("--seed", "x")).toMatchObject({ status: 2, stderr: expect.stringContaining("--seed") });
});
