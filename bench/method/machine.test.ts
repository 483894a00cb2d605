import { describe, expect, it } from "vitest";
import { findFileSystem, keepsFilesInMemory } from "./machine.ts";

const mounts = [
  "/dev/vda / ext4 rw,relatime 0 0",
  "tmpfs /tmp tmpfs rw 0 0",
  "/dev/vdb /srv/my\\040data xfs rw 0 0",
  "overlay /tmp/deep overlay rw 0 0",
  "/dev/vdc /tmp/deep btrfs rw 0 0",
  "",
].join("\n");

describe("the file system of a folder", () => {
  it("is that of the longest mount point above it", () => {
    expect(findFileSystem(mounts, "/var/tmp/run")).toBe("ext4");
    expect(findFileSystem(mounts, "/tmp/run")).toBe("tmpfs");
    expect(findFileSystem(mounts, "/tmp")).toBe("tmpfs");
    expect(findFileSystem(mounts, "/tmpfiles")).toBe("ext4");
  });

  it("is the last one mounted at a point, and a point may have a space in its name", () => {
    expect(findFileSystem(mounts, "/tmp/deep/run")).toBe("btrfs");
    expect(findFileSystem(mounts, "/srv/my data/run")).toBe("xfs");
  });

  it("is known to keep files in memory where it does", () => {
    expect(["tmpfs", "ramfs", "ext4", "overlay"].map(keepsFilesInMemory)).toEqual([true, true, false, false]);
  });
});
