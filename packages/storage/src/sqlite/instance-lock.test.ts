// One holder at a time, decided by the kernel: also against another process, and free the moment its holder dies.
import { statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeTemporaryFolder, startStorageProcess } from "../testing/storage-processes.ts";
import { acquireInstanceLock } from "./instance-lock.ts";

test("a second holder in the same process is refused until the first lets go", async () => {
  const path = join(makeTemporaryFolder(), "lock.db");
  const first = await acquireInstanceLock(path);
  await expect(acquireInstanceLock(path, { waitMs: 0 })).rejects.toMatchObject({ kind: "locked" });
  first.release();
  first.release();
  const second = await acquireInstanceLock(path, { waitMs: 0 });
  second.release();
});

test("another process is refused while we hold the lock", async () => {
  const path = join(makeTemporaryFolder(), "lock.db");
  const lock = await acquireInstanceLock(path);
  const other = startStorageProcess("holdLock", path);
  expect(await other.ended).toBe(0);
  expect(other.lines).toEqual(["locked"]);
  lock.release();
});

test("a holder that dropped its handle still holds the lock, and SIGKILL frees it at once", async () => {
  const path = join(makeTemporaryFolder(), "lock.db");
  const holder = startStorageProcess("holdLock", path);
  await holder.printed("held");
  await expect(acquireInstanceLock(path, { waitMs: 100 })).rejects.toMatchObject({ kind: "locked" });
  holder.child.kill("SIGKILL");
  await holder.ended;
  const lock = await acquireInstanceLock(path, { waitMs: 0 });
  lock.release();
});

test("a predecessor that is about to end is waited for", async () => {
  const path = join(makeTemporaryFolder(), "lock.db");
  const predecessor = await acquireInstanceLock(path);
  const waiting = acquireInstanceLock(path, { waitMs: 20_000 });
  predecessor.release();
  const lock = await waiting;
  await expect(acquireInstanceLock(path, { waitMs: 0 })).rejects.toMatchObject({ kind: "locked" });
  lock.release();
});

test("the lock file is private and is not reached through a link", async () => {
  const folder = makeTemporaryFolder();
  const path = join(folder, "lock.db");
  const lock = await acquireInstanceLock(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  symlinkSync(path, join(folder, "link.db"));
  await expect(acquireInstanceLock(join(folder, "link.db"))).rejects.toMatchObject({ kind: "path_refused" });
  lock.release();
});
