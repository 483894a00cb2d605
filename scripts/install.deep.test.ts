// `npm ci` in a clean clone: the lock file is whole, and npm prints no warning about what is as it should be.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { machineWarning, userEnvironment } from "./packaging/packed-install.ts";

const repository = join(import.meta.dirname, "..");

/** With the Node that is installed on this machine, old or new, and not the workspace's own. */
const env = userEnvironment();
const npmIsThere = (env.PATH ?? "").split(delimiter).some((each) => existsSync(join(each, "npm")));

it.skipIf(!npmIsThere)("installs what the lock file names, without a warning, on the Node of this machine", () => {
  const folder = mkdtempSync(join(tmpdir(), "claudemesh-install-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const file of globSync(["package.json", "package-lock.json", ".npmrc", "packages/*/package.json"], {
    cwd: repository,
  })) {
    cpSync(join(repository, file), join(folder, file));
  }
  const { status, stdout, stderr } = spawnSync("npm", ["ci", "--dry-run", "--prefer-offline"], {
    cwd: folder,
    env,
    encoding: "utf8",
  });
  expect(stderr.replaceAll(machineWarning, "")).toBe("");
  expect(stdout).toMatch(/added \d+ packages/);
  expect(status).toBe(0);
});
