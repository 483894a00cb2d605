// A secret that homes rely on is on disk before it is used.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeTemporaryFolder } from "../../../tests/support/broker-harness.ts";
import { ensureSecretFile } from "./private-secret-file.ts";

test("a secret's name is flushed with its folder once it is there, and no other secret is minted afterwards", () => {
  const folder = makeTemporaryFolder();
  const path = join(folder, "key");
  const flushed: [string, boolean][] = [];
  const flush = (of: string) => void flushed.push([of, existsSync(path)]);
  expect(ensureSecretFile(path, () => "first", flush)).toBe("first");
  expect(ensureSecretFile(path, () => "second", flush)).toBe("first");
  expect(flushed).toEqual([[folder, true]]);
  expect(readdirSync(folder)).toEqual(["key"]);
});
