// `daemon install-service` and `uninstall-service` as commands, on a machine where no service manager is asked: PATH
// holds none, so that a test never changes the services of the user who runs it.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runCli, runJson } from "./support/process.ts";

type Installed = {
  readonly kind: string;
  readonly path: string;
  readonly text: string;
  readonly file: string;
  readonly service: string;
  readonly next: readonly string[];
};

let folder = "";
let home = "";
let env: Record<string, string> = {};

/** What the launcher needs of a PATH, and nothing more. */
function makePath(): string {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  for (const name of ["sh", "uname", "readlink", "id", "env"]) {
    const found = (process.env.PATH ?? "").split(delimiter).find((each) => existsSync(join(each, name)));
    if (found !== undefined) symlinkSync(join(found, name), join(bin, name));
  }
  symlinkSync(process.execPath, join(bin, "node"));
  return bin;
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cm-service-"));
  home = join(folder, "50% mesh");
  mkdirSync(join(home, "daemon", "acme"), { recursive: true, mode: 0o700 });
  writeFileSync(join(home, "daemon", "acme", "config.toml"), "");
  env = { HOME: folder, XDG_CONFIG_HOME: "", PATH: makePath() };
  for (const name of ["CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI", "JENKINS_URL"]) env[name] = "";
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const install = (...flags: string[]) => runJson<Installed>(["daemon", "install-service", ...flags], { home, env });

describe.runIf(process.platform === "linux")("on a Linux without a running systemd", () => {
  test("the unit can be read by every user, and what to type next is said", async () => {
    const installed = await install();
    expect(installed).toMatchObject({ kind: "systemd", scope: "user", file: "written", service: "not started" });
    expect(installed.path).toBe(join(folder, ".config", "systemd", "user", "claudemesh-acme.service"));
    expect(installed.next).toContain("systemctl --user enable claudemesh-acme.service");
    expect(statSync(installed.path).mode & 0o777).toBe(0o644);
    const text = readFileSync(installed.path, "utf8");
    expect(text).toContain(`Environment="CLAUDEMESH_HOME=${home.replace("%", "%%")}"`);
    expect(text).toMatch(/^ExecStart="\/.*\/bin\/claudemesh\.js" "daemon" "up" "--foreground" "--mesh" "acme"$/m);
  });

  test("installing again changes nothing, and taking away twice neither fails", async () => {
    const { path } = await install();
    const before = statSync(path, { bigint: true });
    expect(await install()).toMatchObject({ file: "unchanged" });
    expect(statSync(path, { bigint: true })).toMatchObject({ ino: before.ino, mtimeNs: before.mtimeNs });
    const args = ["daemon", "uninstall-service"];
    expect(await runJson(args, { home, env })).toMatchObject({ file: "removed", path });
    expect(existsSync(path)).toBe(false);
    expect(await runJson(args, { home, env })).toMatchObject({ file: "absent" });
  });

  test("its output says what was written and what is left to do", async () => {
    const installed = await runCli(["daemon", "install-service"], { home, env });
    expect(installed).toMatchObject({ code: 0, stderr: "" });
    expect(installed.stdout).toMatch(/^Wrote .*claudemesh-acme\.service\n/);
    expect(installed.stdout).toContain("  systemctl --user start claudemesh-acme.service\n");
  });

  test("--print shows the unit and changes nothing", async () => {
    const printed = await runCli(["daemon", "install-service", "--print", "--system"], { home, env });
    expect(printed.code).toBe(0);
    expect(printed.stdout).toMatch(/^\[Unit\]\n/);
    expect(printed.stdout).toContain("ProtectSystem=strict");
    expect(existsSync(join(folder, ".config"))).toBe(false);
    expect((await install("--print")).text).toContain("WantedBy=default.target");
    const up = await runCli(["up", "install-service", "--print", "--share", "--plain-http"], { home, env });
    expect(up.stdout).toContain('"up" "--mesh" "local" "--share" "--plain-http"');
  });

  test.for(["CI", "GITHUB_ACTIONS", "JENKINS_URL"])("%s refuses it, unless it is forced", async (name) => {
    env[name] = "yes";
    const refused = await runCli(["daemon", "install-service"], { home, env });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`${name} is set`);
    expect(existsSync(join(folder, ".config"))).toBe(false);
    expect(await install("--force")).toMatchObject({ file: "written" });
  });

  test("another home's unit is left alone", async () => {
    const { path } = await install();
    const other = join(folder, "other");
    mkdirSync(join(other, "daemon", "acme"), { recursive: true, mode: 0o700 });
    writeFileSync(join(other, "daemon", "acme", "config.toml"), "");
    for (const command of ["install-service", "uninstall-service"]) {
      const refused = await runCli(["daemon", command], { home: other, env });
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain("--force");
    }
    expect(readFileSync(path, "utf8")).toContain("mesh");
  });

  test("a mesh that this home does not hold is not found, but its service can be taken away", async () => {
    expect((await runCli(["daemon", "install-service", "--mesh", "gone"], { home, env })).code).toBe(5);
    expect(await runJson(["daemon", "uninstall-service", "--mesh", "gone"], { home, env })).toMatchObject({
      file: "absent",
    });
  });
});
