// The unit by its meaning: read back by the rules of systemd.syntax(7) and systemd.service(5), and by systemd itself
// where it is installed.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { oddFolders, serviceSpec } from "../testing/service-specs.ts";
import { brokerProgram, daemonProgram, type ServiceSpec, upProgram } from "./service-spec.ts";
import { systemdHomeMark, systemdUnit, systemdUnitName } from "./systemd-unit.ts";

type Unit = { readonly of: (section: string, key: string) => string[] };

function readUnit(text: string): Unit {
  const lines: [string, string, string][] = [];
  let section = "";
  for (const line of text.split("\n")) {
    const [, opened] = /^\[(\w+)\]$/.exec(line) ?? [];
    if (opened !== undefined) section = opened;
    else if (line !== "") lines.push([section, line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
  }
  return {
    of: (name, key) => lines.filter(([in_, called]) => in_ === name && called === key).map(([, , value]) => value),
  };
}

/** Words of a value, unquoted and with `%%` as one; any other specifier fails the test. */
function readWords(value: string): string[] {
  const words = [...value.matchAll(/"((?:[^"\\]|\\.)*)"|([^\s"]+)/g)].map(([, inQuotes, bare]) => {
    return inQuotes === undefined ? (bare ?? "") : inQuotes.replace(/\\(.)/g, "$1");
  });
  return words.map((word) => {
    expect(word.replaceAll("%%", "")).not.toContain("%");
    return word.replaceAll("%%", "%");
  });
}

const environmentOf = (unit: Unit) =>
  Object.fromEntries(
    unit
      .of("Service", "Environment")
      .filter((value) => value.startsWith('"'))
      .flatMap(readWords)
      .map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]),
  );

const scopes = ["user", "system"] as const;

describe.each(scopes)("the %s unit of another program", (scope) => {
  it("starts `up` with the options that it was given, under a name that no daemon's unit has", () => {
    const program = upProgram("acme", ["--share", "--listen", "0.0.0.0:7600"]);
    const unit = readUnit(systemdUnit(serviceSpec({ scope, program })));
    const [command = ""] = unit.of("Service", "ExecStart");
    expect(readWords(command).slice(1)).toEqual(["up", "--mesh", "acme", "--share", "--listen", "0.0.0.0:7600"]);
    expect(systemdUnitName({ program })).not.toMatch(/^claudemesh-/);
  });

  it("starts a broker with its settings, in their folder, and lets it write where its store is", () => {
    const program = brokerProgram("/etc/claudemesh/broker.toml", ["/srv/store"]);
    const unit = readUnit(systemdUnit(serviceSpec({ scope, program })));
    const [command = ""] = unit.of("Service", "ExecStart");
    expect(readWords(command).slice(1)).toEqual(["broker", "serve", "--config", "/etc/claudemesh/broker.toml"]);
    expect(unit.of("Service", "WorkingDirectory")).toEqual(["/etc/claudemesh"]);
    expect(readWords(unit.of("Service", "ReadWritePaths")[0] ?? "")).toEqual(["/srv/mesh", "/srv/store"]);
  });
});

describe.each(scopes)("the %s unit", (scope) => {
  const unit = readUnit(systemdUnit(serviceSpec({ scope })));

  it("starts the launcher by its absolute path, in the foreground, for this mesh and home", () => {
    const [command = "", ...others] = unit.of("Service", "ExecStart");
    expect(others).toEqual([]);
    expect(readWords(command)).toEqual([
      "/opt/claudemesh/bin/claudemesh.js",
      ...["daemon", "up", "--foreground", "--mesh", "acme"],
    ]);
    expect(environmentOf(unit)).toMatchObject({ CLAUDEMESH_HOME: "/srv/mesh" });
    expect(environmentOf(unit).PATH?.split(":")[0]).toBe("/opt/node/bin");
  });

  it("restarts after a failure, not after wrong usage or a replacement, and not without end", () => {
    expect(unit.of("Service", "Restart")).toEqual(["on-failure"]);
    expect(unit.of("Service", "RestartPreventExitStatus")).toEqual(["2 4"]);
    const pauseS = Number(unit.of("Service", "RestartSec")[0]);
    const burst = Number(unit.of("Unit", "StartLimitBurst")[0]);
    const intervalS = Number(unit.of("Unit", "StartLimitIntervalSec")[0]);
    expect(burst).toBeGreaterThan(0);
    expect(pauseS).toBeGreaterThan(0);
    // Otherwise the limit could never be reached.
    expect(burst * pauseS).toBeLessThan(intervalS);
  });

  it("stops by SIGTERM and gives the daemon more than its five seconds", () => {
    expect(unit.of("Service", "KillSignal")).toEqual(["SIGTERM"]);
    expect(Number(unit.of("Service", "TimeoutStopSec")[0])).toBeGreaterThan(5);
  });

  it("keeps what it makes to its owner, and leaves memory writable for the JIT", () => {
    expect(unit.of("Service", "UMask")).toEqual(["0077"]);
    expect(unit.of("Service", "NoNewPrivileges")).toEqual(["yes"]);
    expect(unit.of("Service", "MemoryDenyWriteExecute")).toEqual([]);
  });

  it.each(oddFolders)("means %j where that is the home and the program", (folder) => {
    const odd = readUnit(systemdUnit(serviceSpec({ scope, home: folder, launcher: `${folder}/c.js` })));
    expect(environmentOf(odd).CLAUDEMESH_HOME).toBe(folder);
    const words = readWords(odd.of("Service", "ExecStart")[0] ?? "");
    const throughShell = words[0] === "/bin/sh";
    expect(throughShell).toBe(/["'\\]/.test(folder));
    // A dollar sign is doubled in arguments, and in arguments alone.
    const launcher = throughShell ? words[1]?.replaceAll("$$", "$") : words[0];
    expect(launcher).toBe(`${folder}/c.js`);
    for (const path of odd.of("Service", "ReadWritePaths")) expect(readWords(path)).toEqual([folder]);
  });

  it.each(["/srv/line\nbreak", "/srv/bell\u0007", "relative/home"])("is refused for the home %j", (home) => {
    expect(() => systemdUnit(serviceSpec({ scope, home }))).toThrow(/path/);
  });

  it("is known by its mark, and only for this home", () => {
    const spec = serviceSpec({ scope });
    expect(systemdUnit(spec)).toContain(systemdHomeMark(spec));
    expect(systemdUnit(serviceSpec({ scope, home: "/srv/mesh2" }))).not.toContain(systemdHomeMark(spec));
  });
});

describe("the two units", () => {
  const user = readUnit(systemdUnit(serviceSpec()));
  const system = readUnit(systemdUnit(serviceSpec({ scope: "system" })));

  it("are started with the user's session, or with the machine as the home's owner", () => {
    expect(user.of("Install", "WantedBy")).toEqual(["default.target"]);
    expect(user.of("Service", "User")).toEqual([]);
    expect(system.of("Install", "WantedBy")).toEqual(["multi-user.target"]);
    expect(system.of("Service", "User")).toEqual(["1000"]);
    expect(system.of("Service", "Group")).toEqual(["1001"]);
  });

  it("shut the daemon in so that its home stays writable", () => {
    for (const unit of [user, system]) {
      expect(unit.of("Service", "ProtectSystem")).toEqual(["strict"]);
      expect(unit.of("Service", "ReadWritePaths").flatMap(readWords)).toEqual(["/srv/mesh"]);
      expect(unit.of("Service", "PrivateTmp")).toEqual(["yes"]);
      expect(unit.of("Service", "CacheDirectory")).toEqual(["claudemesh-acme"]);
    }
    // Without it a user's manager cannot make the other namespaces, and the unit would not start.
    expect(user.of("Service", "PrivateUsers")).toEqual(["yes"]);
    expect(system.of("Service", "PrivateUsers")).toEqual([]);
  });

  it("keep a home in sight that lies among temporary files", () => {
    for (const scope of scopes) {
      const unit = readUnit(systemdUnit(serviceSpec({ scope, home: "/tmp/try/mesh" })));
      expect(unit.of("Service", "PrivateTmp")).toEqual([]);
    }
  });

  it("of which the user's has a basic form that needs no namespace at all", () => {
    const basic = readUnit(systemdUnit(serviceSpec(), "basic"));
    for (const key of ["PrivateUsers", "ProtectSystem", "ProtectHome", "PrivateTmp", "CapabilityBoundingSet"]) {
      expect(basic.of("Service", key), key).toEqual([]);
    }
    expect(basic.of("Service", "ExecStart")).toEqual(user.of("Service", "ExecStart"));
    expect(basic.of("Service", "SystemCallFilter")).toEqual(user.of("Service", "SystemCallFilter"));
  });

  it("have names that differ by mesh", () => {
    expect(systemdUnitName(serviceSpec())).toBe("claudemesh-acme.service");
  });
});

const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0;
if (!hasSystemd) {
  const message = "skipped: what systemd itself says of the units needs systemd-analyze";
  if (process.env.CLAUDEMESH_REQUIRE_SERVICES === "1") throw new Error(message);
  process.stdout.write(`${message}\n`);
}

describe.runIf(hasSystemd)("systemd itself", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "cm-unit-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** A unit whose launcher is really there, because systemd looks. */
  function write(name: string, given: Partial<ServiceSpec>): string {
    const home = join(folder, `${name} home`);
    const launcher = join(folder, given.launcher ?? "claudemesh.js");
    mkdirSync(home, { recursive: true });
    mkdirSync(join(launcher, ".."), { recursive: true });
    writeFileSync(launcher, "#!/bin/sh\n");
    chmodSync(launcher, 0o755);
    const spec = serviceSpec({ program: daemonProgram(name), ...given, home, launcher });
    const path = join(folder, systemdUnitName(spec));
    writeFileSync(path, systemdUnit(spec));
    return path;
  }

  function analyze(...args: readonly string[]): { readonly status: number | null; readonly said: string } {
    const env = { ...process.env, XDG_RUNTIME_DIR: folder, SYSTEMD_COLORS: "0" };
    const { status, stdout, stderr } = spawnSync("systemd-analyze", args, { encoding: "utf8", env });
    return { status, said: stdout + stderr };
  }

  const silent = { status: 0, said: "" };

  it.each(["user", "system"] as const)("has nothing to say against the %s units of `up` and of a broker", (scope) => {
    const settings = join(folder, "with space", "100%");
    mkdirSync(settings, { recursive: true });
    const up = upProgram("acme", ["--share", "--public-url", "https://mesh.example.org:7600"]);
    const broker = brokerProgram(join(settings, "broker.toml"), [settings, join(folder, "with space")]);
    for (const program of [up, broker]) {
      const args = scope === "user" ? ["--user", "verify"] : ["verify"];
      expect(analyze(...args, write(program.unit, { scope, program }))).toEqual(silent);
    }
  });

  it("has nothing to say against the system unit", () => {
    expect(analyze("verify", write("plain", { scope: "system" }))).toEqual(silent);
  });

  it("has nothing to say against the user unit", () => {
    expect(analyze("--user", "verify", write("mine", { scope: "user" }))).toEqual(silent);
  });

  it.each([
    ["spaces", "with space/c.js"],
    ["percent", "100% %h/c.js"],
    ["dollar", "$HOME $(id)/c.js"],
    ["quotes", 'it\'s "quoted"/c.js'],
    ["backslash", "back\\slash\\n/c.js"],
  ])("finds a launcher whose path has %s", (name, launcher) => {
    expect(analyze("verify", write(name, { scope: "system", launcher }))).toEqual(silent);
  });

  it("would have said something: a launcher that is not there is noticed", () => {
    const path = write("gone", { scope: "system", launcher: "gone/c.js" });
    rmSync(join(folder, "gone"), { recursive: true });
    expect(analyze("verify", path).said).toContain("gone/c.js");
  });

  it.each([
    ["system unit of an ordinary user", "system", 1000],
    ["system unit of root", "system", 0],
    ["user unit", "user", 1000],
  ] as const)("finds the %s exposed by at most 3.0", (_, scope, uid) => {
    const path = write(`exposure-${scope}-${uid}`, { scope, owner: { uid, gid: uid, name: "x" } });
    const { status, said } = analyze("security", "--offline=true", "--threshold=30", path);
    const [, exposure] = /Overall exposure level for \S+: ([0-9.]+)/.exec(said) ?? [];
    expect(Number(exposure)).toBeGreaterThan(0);
    expect(Number(exposure)).toBeLessThanOrEqual(3);
    expect(status).toBe(0);
  });
});
