import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type DaemonSettings, readDaemonConfig } from "./config.ts";
import { isInContainer } from "./files/container.ts";

const mesh = '[mesh]\nid = "i"\nname = "acme"\nbroker = "ws://b"\nmember_name = "me"\n';

function read(toml: string, overrides: DaemonSettings = {}, env: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "cm-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "config.toml");
  writeFileSync(path, toml);
  return readDaemonConfig({ path, overrides, env });
}

describe("config.toml", () => {
  it("needs to say nothing but the mesh", () => {
    expect(read(mesh)).toEqual({
      outbox: {
        backoff: { minMs: 500, maxMs: 60_000 },
        requestTimeoutMs: 10_000,
        maxBytes: 2_147_483_648,
        maxAgeHoursOverride: undefined,
        doneRetentionDays: 30,
      },
      reconnect: { backoff: { minMs: 500, maxMs: 5_000 } },
      ipc: {
        tcpEnabled: undefined,
        maxInFlight: 64,
        maxStreams: 32,
        maxBodyBytes: 1_048_576,
        allowedOrigins: [],
        publicHealthCheck: false,
      },
      inbox: { retentionDays: undefined },
      clone: { policy: "refuse" },
    });
  });

  it("sets every limit", () => {
    const config = read(`${mesh}
[outbox]
backoff_min_ms = 10
backoff_max_ms = 20
request_timeout_ms = 30
max_bytes = 1_000_000
max_age_hours_override = 40
done_retention_days = 50
[reconnect]
backoff_min_ms = 70
backoff_max_ms = 80
[ipc]
tcp_enabled = false
max_in_flight = 5
max_streams = 6
max_body_bytes = 2048
allowed_origins = ["https://a.example"]
public_health_check = true
[inbox]
retention_days = 60
[clone]
policy = "warn"
`);
    expect(config).toEqual({
      outbox: {
        backoff: { minMs: 10, maxMs: 20 },
        requestTimeoutMs: 30,
        maxBytes: 1_000_000,
        maxAgeHoursOverride: 40,
        doneRetentionDays: 50,
      },
      reconnect: { backoff: { minMs: 70, maxMs: 80 } },
      ipc: {
        tcpEnabled: false,
        maxInFlight: 5,
        maxStreams: 6,
        maxBodyBytes: 2_048,
        allowedOrigins: ["https://a.example"],
        publicHealthCheck: true,
      },
      inbox: { retentionDays: 60 },
      clone: { policy: "warn" },
    });
  });

  it("stands below the environment, which stands below what is given at start", () => {
    const toml = `${mesh}[ipc]\ntcp_enabled = false\nmax_in_flight = 5\n`;
    const env = { CLAUDEMESH_IPC_TCP_ENABLED: "true" };
    expect(read(toml, {}, env).ipc).toMatchObject({ tcpEnabled: true, maxInFlight: 5 });
    expect(read(toml, { ipc: { tcp_enabled: false } }, env).ipc.tcpEnabled).toBe(false);
  });

  it.each([
    ["its own", "[reconnect]\nbackoff_min_ms = 20\nbackoff_max_ms = 700\n", 20, 700],
    ["the outbox's where those are shorter", "[outbox]\nbackoff_min_ms = 10\nbackoff_max_ms = 100\n", 10, 100],
    ["five seconds at most", "[outbox]\nbackoff_min_ms = 60000\nbackoff_max_ms = 90000\n", 500, 5_000],
    ["a shortest below its own longest", "[reconnect]\nbackoff_max_ms = 100\n", 100, 100],
  ])("waits between tries to connect for %s", (_, toml, minMs, maxMs) => {
    expect(read(`${mesh}${toml}`).reconnect.backoff).toEqual({ minMs, maxMs });
  });

  it.each([
    [
      "a pause before connecting that is longer than a broker should wait",
      `${mesh}[reconnect]\nbackoff_max_ms = 5001\n`,
      "reconnect.backoff_max_ms",
    ],
    [
      "a pause before connecting that ends before it begins",
      `${mesh}[reconnect]\nbackoff_min_ms = 5\nbackoff_max_ms = 4\n`,
      "backoff_max_ms",
    ],
    ["an unknown key", `${mesh}[outbox]\nmax_byte = 1\n`, "outbox.max_byte"],
    ["an unknown section", `${mesh}[hooks]\na = 1\n`, "hooks"],
    ["an unknown key of the mesh", `${mesh}colour = "red"\n`, "mesh.colour"],
    ["a wrong type", `${mesh}[ipc]\ntcp_enabled = "yes"\n`, "ipc.tcp_enabled"],
    ["a value that is none of those there are", `${mesh}[clone]\npolicy = "maybe"\n`, "clone.policy"],
    ["a number out of range", `${mesh}[ipc]\nmax_body_bytes = 99999999\n`, "ipc.max_body_bytes"],
    [
      "a backoff that ends before it begins",
      `${mesh}[outbox]\nbackoff_min_ms = 5\nbackoff_max_ms = 4\n`,
      "backoff_max_ms",
    ],
    ["no TOML", "[mesh\n", "line 1"],
  ])("with %s is refused by name", (_, toml, name) => {
    expect(() => read(toml)).toThrow(
      expect.objectContaining({ reason: "config_invalid", message: expect.stringContaining(name) }),
    );
  });

  it("refuses a value of the environment that is neither true nor false", () => {
    expect(() => read(mesh, {}, { CLAUDEMESH_IPC_TCP_ENABLED: "1" })).toThrow(/CLAUDEMESH_IPC_TCP_ENABLED/);
  });
});

describe("a container", () => {
  const signs = { env: {}, exists: () => false, read: () => undefined };

  it("is known by its marker files, its environment or its cgroup", () => {
    expect(isInContainer(signs)).toBe(false);
    expect(isInContainer({ ...signs, exists: (path) => path === "/.dockerenv" })).toBe(true);
    expect(isInContainer({ ...signs, env: { container: "podman" } })).toBe(true);
    expect(isInContainer({ ...signs, env: { KUBERNETES_SERVICE_HOST: "10.0.0.1" } })).toBe(true);
    expect(isInContainer({ ...signs, read: () => "0::/kubepods/pod1" })).toBe(true);
    expect(isInContainer({ ...signs, read: () => "0::/init.scope" })).toBe(false);
  });
});
