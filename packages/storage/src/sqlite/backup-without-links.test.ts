// A backup onto a file system that has no hard links, as some network shares and sticks.
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { makeTemporaryFolder } from "../testing/storage-processes.ts";
import { backUpSqlite } from "./backup.ts";
import { openSqlite } from "./sqlite.ts";

const beforeLink = vi.hoisted((): { run: () => void } => ({ run: () => undefined }));

vi.mock("node:fs", async (importOriginal) => ({
  ...(await importOriginal<typeof import("node:fs")>()),
  linkSync: () => {
    beforeLink.run();
    throw Object.assign(new Error("no links here"), { code: "EPERM" });
  },
}));

test("is made all the same, and replaces no file that has appeared meanwhile", async () => {
  const folder = makeTemporaryFolder();
  const db = openSqlite({ path: ":memory:" });
  await backUpSqlite(db, join(folder, "copy.db"));
  expect(readdirSync(folder)).toEqual(["copy.db"]);
  const taken = join(folder, "taken.db");
  beforeLink.run = () => writeFileSync(taken, "precious");
  await expect(backUpSqlite(db, taken)).rejects.toMatchObject({ kind: "path_refused" });
  expect(readdirSync(folder).sort()).toEqual(["copy.db", "taken.db"]);
  db.close();
});
