import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { MeshError } from "@claudemesh/protocol/errors";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TemporaryDir } from "../testing/temporary-dir.ts";
import {
  chooseMesh,
  ensureMeshDir,
  ensurePrivateDir,
  homeDir,
  listMeshes,
  meshPaths,
  readMeshConfig,
  writeMeshConfig,
} from "./home.ts";
import { LocalFileError } from "./private-files.ts";
import { homeConfigPath, readUsedMesh, writeUsedMesh } from "./used-mesh.ts";

let dir: TemporaryDir;

beforeEach(() => {
  dir = new TemporaryDir();
});

afterEach(() => {
  vi.restoreAllMocks();
  dir.remove();
});

const modeOf = (path: string) => statSync(path).mode & 0o777;
const config = { id: "01890000-0000-7000-8000-000000000001", name: "acme", broker: "ws://a", member_name: "alice" };

function addMesh(home: string, name: string): void {
  const paths = meshPaths(home, name);
  ensureMeshDir(paths);
  writeMeshConfig(paths, { ...config, name });
}

describe("the home", () => {
  it("is CLAUDEMESH_HOME as an absolute path, else .claudemesh in the user's folder", () => {
    expect(homeDir({ CLAUDEMESH_HOME: "/srv/mesh/", HOME: "/home/a" })).toBe("/srv/mesh");
    expect(homeDir({ CLAUDEMESH_HOME: "here" })).toBe(`${process.cwd()}/here`);
    expect(homeDir({ CLAUDEMESH_HOME: "", HOME: "/home/a" })).toBe("/home/a/.claudemesh");
    expect(homeDir({})).toBe(`${homedir()}/.claudemesh`);
  });

  it("has one folder per mesh", () => {
    expect(meshPaths("/h", "acme")).toEqual({
      home: "/h",
      mesh: "acme",
      dir: "/h/daemon/acme",
      sock: "/h/daemon/acme/sock",
      httpPort: "/h/daemon/acme/http.port",
      localToken: "/h/daemon/acme/local_token",
      keypair: "/h/daemon/acme/keypair.json",
      hostFingerprint: "/h/daemon/acme/host_fingerprint.json",
      config: "/h/daemon/acme/config.toml",
      outboxDb: "/h/daemon/acme/outbox.db",
      inboxDb: "/h/daemon/acme/inbox.db",
      schemaVersion: "/h/daemon/acme/schema_version",
      log: "/h/daemon/acme/daemon.log",
      pid: "/h/daemon/acme/pid",
      lock: "/h/daemon/acme/lock.db",
      lastRun: "/h/daemon/acme/last_run.json",
      brokers: "/h/daemon/acme/brokers.json",
    });
  });

  it.each(["..", ".", "", "a/b", "../x", "a\0b"])("refuses %j as a mesh's name", (name) => {
    expect(() => meshPaths("/h", name)).toThrow(expect.objectContaining({ code: "invalid_name" }));
  });

  it.each([
    ["linux", 107],
    ["darwin", 103],
  ] as const)("on %s refuses a socket's path of more than %i bytes and names CLAUDEMESH_HOME", (platform, limit) => {
    const rest = "/daemon/acme/sock".length;
    const fits = `/${"h".repeat(limit - rest - 1)}`;
    expect(meshPaths(fits, "acme", platform).sock).toHaveLength(limit);
    expect(() => meshPaths(`${fits}h`, "acme", platform)).toThrow(/CLAUDEMESH_HOME/);
    const inUmlauts = `/${"ü".repeat(limit - rest - 1)}`;
    expect(() => meshPaths(inUmlauts, "acme", platform)).toThrow(MeshError);
  });
});

describe("a private folder", () => {
  it.each([0o000, 0o022, 0o777])("is 0700 with umask %o, and so are its new parents", (umask) => {
    const before = process.umask(umask);
    try {
      ensurePrivateDir(dir.at("a", "b", "c"));
    } finally {
      process.umask(before);
    }
    expect([dir.at("a"), dir.at("a", "b"), dir.at("a", "b", "c")].map(modeOf)).toEqual([0o700, 0o700, 0o700]);
  });

  it("is narrowed when it exists, while its parents stay as they are", () => {
    mkdirSync(dir.at("open"));
    chmodSync(dir.at("open"), 0o755);
    mkdirSync(dir.at("open", "mine"));
    chmodSync(dir.at("open", "mine"), 0o777);
    ensurePrivateDir(dir.at("open", "mine"));
    expect(modeOf(dir.at("open", "mine"))).toBe(0o700);
    expect(modeOf(dir.at("open"))).toBe(0o755);
  });

  it("is refused when it is a symbolic link, a file, or another user's", () => {
    mkdirSync(dir.at("real"), 0o755);
    symlinkSync(dir.at("real"), dir.at("link"));
    writeFileSync(dir.at("file"), "");
    expect(() => ensurePrivateDir(dir.at("link"))).toThrow(LocalFileError);
    expect(() => ensurePrivateDir(dir.at("file"))).toThrow(LocalFileError);
    const uid = process.getuid?.() ?? 0;
    vi.spyOn(process, "getuid").mockReturnValue(uid + 1);
    expect(() => ensurePrivateDir(dir.at("real"))).toThrow(expect.objectContaining({ problem: "unsafe" }));
  });

  it("of a mesh is 0700 at every level below the home", () => {
    const paths = meshPaths(dir.at("home"), "acme");
    ensureMeshDir(paths);
    expect([paths.home, dir.at("home", "daemon"), paths.dir].map(modeOf)).toEqual([0o700, 0o700, 0o700]);
  });
});

describe("the meshes of a home", () => {
  it("are none where there is no home", () => {
    expect(listMeshes(dir.at("none"))).toEqual([]);
    expect(() => chooseMesh(dir.at("none"))).toThrow(/claudemesh up.*claudemesh mesh join/);
    expect(() => chooseMesh(dir.at("none"), "acme")).toThrow(expect.objectContaining({ code: "not_found" }));
  });

  it("are those with a config, sorted by name", () => {
    addMesh(dir.path, "zeta");
    addMesh(dir.path, "acme");
    ensureMeshDir(meshPaths(dir.path, "half-made"));
    writeFileSync(dir.at("daemon", "a-file"), "");
    expect(listMeshes(dir.path)).toEqual(["acme", "zeta"]);
  });

  it("need not be named where there is one", () => {
    addMesh(dir.path, "acme");
    expect(chooseMesh(dir.path)).toBe("acme");
    expect(chooseMesh(dir.path, "acme")).toBe("acme");
    expect(() => chooseMesh(dir.path, "other")).toThrow(
      expect.objectContaining({ code: "not_found", details: { home: dir.path, meshes: ["acme"] } }),
    );
  });

  it("must be named where there are several", () => {
    addMesh(dir.path, "acme");
    addMesh(dir.path, "zeta");
    expect(chooseMesh(dir.path, "zeta")).toBe("zeta");
    expect(() => chooseMesh(dir.path)).toThrow(/acme, zeta.*--mesh/);
  });

  it("are chosen from by name, then by the environment, then by the home, and an empty variable is none", () => {
    for (const name of ["acme", "beta", "zeta"]) addMesh(dir.path, name);
    writeUsedMesh(dir.path, "acme");
    const env = { CLAUDEMESH_MESH: "beta" };
    expect(chooseMesh(dir.path, "zeta", env)).toBe("zeta");
    expect(chooseMesh(dir.path, undefined, env)).toBe("beta");
    expect(chooseMesh(dir.path, undefined, { CLAUDEMESH_MESH: "" })).toBe("acme");
    writeUsedMesh(dir.path, undefined);
    expect(() => chooseMesh(dir.path)).toThrow(/several meshes/);
  });

  it("that are not there are refused with where their name comes from", () => {
    addMesh(dir.path, "acme");
    expect(() => chooseMesh(dir.path, "gone")).toThrow(/no mesh "gone" in [^,]*; it holds acme/);
    expect(() => chooseMesh(dir.path, "a b")).toThrow(expect.objectContaining({ code: "invalid_name" }));
    expect(() => chooseMesh(dir.path, undefined, { CLAUDEMESH_MESH: "gone" })).toThrow(/"gone".*CLAUDEMESH_MESH/);
    writeUsedMesh(dir.path, "gone");
    expect(() => chooseMesh(dir.path)).toThrow(/"gone".*`claudemesh mesh use` chose it.*--none/);
  });

  it("are chosen in a file that keeps what else it says, and that is refused where it says nonsense", () => {
    addMesh(dir.path, "acme");
    const path = homeConfigPath(dir.path);
    writeFileSync(path, '# mine\n[other]\nkey = "x"\n', { mode: 0o600 });
    writeUsedMesh(dir.path, "acme");
    expect(readFileSync(path, "utf8")).toContain('# mine\n[other]\nkey = "x"');
    expect([readUsedMesh(dir.path), modeOf(path)]).toEqual(["acme", 0o600]);
    writeFileSync(path, "[home]\nmesh = 7\n");
    expect(() => readUsedMesh(dir.path)).toThrow(LocalFileError);
    writeFileSync(path, "[home\n");
    expect(() => chooseMesh(dir.path)).toThrow(/not valid TOML at line 1/);
  });
});

describe("a mesh's config", () => {
  it("is written 0600 and reads back", () => {
    addMesh(dir.path, "acme");
    const paths = meshPaths(dir.path, "acme");
    expect(modeOf(paths.config)).toBe(0o600);
    expect(readMeshConfig(paths)).toEqual(config);
  });

  it("keeps everything else when the broker's address changes", () => {
    addMesh(dir.path, "acme");
    const paths = meshPaths(dir.path, "acme");
    const before = readFileSync(paths.config, "utf8");
    writeFileSync(paths.config, `${before}\n[outbox]\nmax_bytes = 5 # mine\n`);
    writeMeshConfig(paths, { ...config, broker: "wss://b" });
    expect(readFileSync(paths.config, "utf8")).toBe(
      `${before.replace("ws://a", "wss://b")}\n[outbox]\nmax_bytes = 5 # mine\n`,
    );
    expect(readMeshConfig(paths).broker).toBe("wss://b");
  });

  it("that is missing, broken or incomplete is refused and left alone", () => {
    const paths = meshPaths(dir.path, "acme");
    ensureMeshDir(paths);
    expect(() => readMeshConfig(paths)).toThrow(expect.objectContaining({ problem: "missing" }));
    writeFileSync(paths.config, "[mesh\n");
    expect(() => readMeshConfig(paths)).toThrow(/line 1/);
    expect(() => writeMeshConfig(paths, config)).toThrow(expect.objectContaining({ problem: "unreadable" }));
    expect(readFileSync(paths.config, "utf8")).toBe("[mesh\n");
    writeFileSync(paths.config, '[mesh]\nid = "1"\nname = "acme"\nbroker = 7\n');
    expect(() => readMeshConfig(paths)).toThrow(/broker/);
    const said = '[mesh]\nid = "1"\nname = "acme"\nmember_name = "a"\nbroker = "nonsense"\n';
    writeFileSync(paths.config, said);
    expect(() => readMeshConfig(paths)).toThrow(expect.objectContaining({ problem: "unreadable" }));
    expect(() => readMeshConfig(paths)).toThrow(paths.config);
    expect(existsSync(paths.config)).toBe(true);
  });
});
