import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const source = join(import.meta.dirname, "../..");
const changesRows = /\b(?:UPDATE|INTO|DELETE FROM) outbox(?:_tombstone)?\b/;

it("statements that change rows of the outbox or its tombstones are in one file", () => {
  const product = globSync("**/*.ts", { cwd: source }).filter((path) => !/\.test\.ts$|(?:^|\/)testing\//.test(path));
  const changing = product.filter((path) => changesRows.test(readFileSync(join(source, path), "utf8")));
  expect(changing).toEqual(["stores/sqlite/outbox-rows.ts"]);
});
