import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { skipUnlessRequired } from "./missing-part.ts";
import { SmallDisk } from "./small-disk.ts";

test("a small disk is full for every process until it is freed, and gone when it is unmounted", async (context) => {
  const base = mkdtempSync(join(tmpdir(), "cm-disk-"));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const disk = await SmallDisk.mount(join(base, "disk"), 1_048_576);
  if (disk === undefined) return skipUnlessRequired(context, "only root can mount");
  onTestFinished(() => disk.unmount());
  const file = join(disk.folder, "file");
  const write = () => writeFileSync(file, "x".repeat(8_192));
  disk.fill();
  expect(write).toThrow("ENOSPC");
  disk.free();
  write();
  await disk.unmount();
  expect(existsSync(file)).toBe(false);
});
