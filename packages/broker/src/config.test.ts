// Where a broker's settings come from, which one wins, and the message for a wrong one.
import { chmodSync, chownSync, lchownSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { BrokerConfigError, brokerOptions, chooseConfigFile, locationOf, readBrokerConfig } from "./config.ts";

const folder = mkdtempSync(join(tmpdir(), "claudemesh-config-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

function toml(text: string): string {
  const path = join(folder, `${++files}.toml`);
  writeFileSync(path, text);
  return path;
}

function refusalOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof BrokerConfigError) return error.message;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("the settings", () => {
  test("have defaults for one machine", () => {
    expect(readBrokerConfig({}, {}, undefined)).toEqual({
      listen: { host: "127.0.0.1", port: 7600 },
      publicUrl: undefined,
      tlsCert: undefined,
      tlsKey: undefined,
      plainHttp: false,
      store: { kind: "sqlite", path: "./broker.db" },
      redisUrl: undefined,
      limiterOpen: false,
      adminTokenFile: undefined,
      deliverySweepSeconds: undefined,
      rateLimit: { limit: 6000, windowSeconds: 60 },
      commitRateLimit: { limit: 268_435_456, windowSeconds: 60 },
      inlineBytes: 65_536,
      dedupe: { mode: "retention_scoped", dedupe_retention_days: 365 },
      messageRetention: { days: undefined },
      nightlyCheck: { minute: 180 },
      connectionPolicy: "prefer_newest",
      strangersPerAddress: 1_024,
      meshLimits: {},
      webhookAllowPrivate: false,
      webhookTimeoutMs: 10_000,
      webhookAttempts: 16,
      webhookBackoffMinMs: 1_000,
      webhookBackoffMaxMs: 3_600_000,
      registrarVerifier: undefined,
      logLevel: "info",
      configFile: undefined,
      failpoints: "",
    });
  });

  test("come from a flag, else the environment, else broker.toml", () => {
    const path = toml('listen = "127.0.0.1:1"\nrate_limit = "1/1s"\nmax_inline_bytes = 2048\n');
    const env = { CLAUDEMESH_LISTEN: "127.0.0.1:2", CLAUDEMESH_RATE_LIMIT: "2/2s" };
    const config = readBrokerConfig({ listen: "127.0.0.1:3" }, env, path);
    expect(config.listen.port).toBe(3);
    expect(config.rateLimit).toEqual({ limit: 2, windowSeconds: 2 });
    expect(config.inlineBytes).toBe(2048);
    expect(config.logLevel).toBe("info");
  });

  test("each have a flag, a variable and a key of the same name", () => {
    const values: Record<string, [text: string, value: unknown]> = {
      listen: ["[::1]:0", { host: "::1", port: 0 }],
      publicUrl: ["https://mesh.example.org/x/", "https://mesh.example.org/x"],
      tlsCert: ["/etc/mesh/cert.pem", "/etc/mesh/cert.pem"],
      tlsKey: ["/etc/mesh/key.pem", "/etc/mesh/key.pem"],
      plainHttp: ["true", true],
      store: ["sqlite:/var/lib/x.db", { kind: "sqlite", path: "/var/lib/x.db" }],
      redisUrl: ["rediss://:secret@cache:6380/1", "rediss://:secret@cache:6380/1"],
      limiterOpen: ["true", true],
      adminTokenFile: ["/run/secrets/admin", "/run/secrets/admin"],
      deliverySweepSeconds: ["30", 30],
      rateLimit: ["10/1s", { limit: 10, windowSeconds: 1 }],
      commitRateLimit: ["1000000/1s", { limit: 1_000_000, windowSeconds: 1 }],
      inlineBytes: ["1048576", 1_048_576],
      dedupe: ["permanent", { mode: "permanent" }],
      messageRetention: ["30", { days: 30 }],
      nightlyCheck: ["23:59", { minute: 1_439 }],
      connectionPolicy: ["allow_concurrent", "allow_concurrent"],
      strangersPerAddress: ["64", 64],
      meshLimits: ["max_topics:5, max_tokens:20000", { max_topics: 5, max_tokens: 20_000 }],
      webhookAllowPrivate: ["true", true],
      webhookTimeoutMs: ["100", 100],
      webhookAttempts: ["1", 1],
      webhookBackoffMinMs: ["10", 10],
      webhookBackoffMaxMs: ["86400000", 86_400_000],
      registrarVerifier: ["exec:/usr/local/bin/verify", "/usr/local/bin/verify"],
      logLevel: ["silent", "silent"],
    };
    expect(Object.keys(values)).toEqual(Object.keys(brokerOptions));
    for (const [name, known] of Object.entries(brokerOptions)) {
      const [text, value] = values[name] ?? [];
      const read = [
        readBrokerConfig({ [known.flag]: text }, {}, undefined),
        readBrokerConfig({}, { [known.env]: text }, undefined),
        readBrokerConfig({}, {}, toml(`${known.key} = ${JSON.stringify(text)}`)),
      ];
      for (const config of read) expect(config[name as keyof typeof config]).toEqual(value);
    }
  });

  test("name a PostgreSQL by its address, of a host or of a socket in the file system", () => {
    for (const url of [
      "postgres://mesh@db/mesh",
      "postgresql://mesh:secret@db:5433/mesh?sslmode=require",
      "postgres:///mesh?host=/run/postgresql",
    ]) {
      expect(readBrokerConfig({ store: url }, {}, undefined).store).toEqual({ kind: "postgres", url });
    }
  });

  test("show a PostgreSQL by its host and database alone", () => {
    const url = "postgres://mesh:hunter2@db:5433/mesh?password=hunter2";
    expect(locationOf({ kind: "postgres", url })).toBe("postgres://db:5433/mesh");
    expect(locationOf({ kind: "postgres", url: "postgres://db/mesh?password=hunter@2" })).toBe("postgres://…");
  });

  test.each(["0.0.0.0:7600", "[::]:7600", "192.168.7.9:7600", "mesh.example.org:80"])(
    "refuse to listen on %s in clear, unless that is asked for or a proxy ends TLS",
    (listen) => {
      expect(refusalOf(() => readBrokerConfig({ listen }, {}, undefined))).toContain("--plain-http");
      const near = { listen, "public-url": "http://mesh.example.org" };
      expect(refusalOf(() => readBrokerConfig(near, {}, undefined))).toContain("up --share");
      expect(readBrokerConfig({ listen, "plain-http": "true" }, {}, undefined).listen.host).not.toBe("");
      expect(readBrokerConfig({ listen, "public-url": "https://mesh.example.org" }, {}, undefined).tlsCert).toBe(
        undefined,
      );
      expect(readBrokerConfig({ listen, "tls-cert": "c.pem", "tls-key": "k.pem" }, {}, undefined).tlsCert).toBe(
        "c.pem",
      );
    },
  );

  test("turn a switch on and off in broker.toml by true and false", () => {
    expect(readBrokerConfig({}, {}, toml("limiter_open = true")).limiterOpen).toBe(true);
    expect(readBrokerConfig({}, {}, toml("limiter_open = false")).limiterOpen).toBe(false);
  });

  test("take an empty variable for an unset one", () => {
    expect(readBrokerConfig({}, { CLAUDEMESH_LISTEN: "" }, undefined).listen.port).toBe(7600);
  });

  test("take fault points from the environment alone", () => {
    const env = { CLAUDEMESH_FAILPOINTS: "accept.before_commit=crash" };
    expect(readBrokerConfig({}, env, undefined).failpoints).toBe("accept.before_commit=crash");
    expect(refusalOf(() => readBrokerConfig({}, {}, toml('failpoints = "x"')))).toContain("failpoints");
  });
});

describe("broker.toml", () => {
  test("with an unknown key is refused by that key, and says which there are", () => {
    const path = toml('listen = "127.0.0.1:1"\nlimiter = 3\n');
    const refusal = refusalOf(() => readBrokerConfig({ listen: "127.0.0.1:2" }, {}, path));
    expect(refusal).toContain("unknown key limiter");
    for (const { key } of Object.values(brokerOptions)) expect(refusal).toContain(key);
  });

  test("takes numbers where they fit and nothing else than text and numbers", () => {
    expect(readBrokerConfig({}, {}, toml("dedupe_retention_days = 30")).dedupe).toEqual({
      mode: "retention_scoped",
      dedupe_retention_days: 30,
    });
    for (const value of ["true", "[1]", "{ a = 1 }", "2026-01-01"]) {
      expect(refusalOf(() => readBrokerConfig({}, {}, toml(`listen = ${value}`)))).toContain("listen in ");
    }
  });

  test("that is missing or broken is named", () => {
    const missing = join(folder, "absent.toml");
    expect(refusalOf(() => readBrokerConfig({}, {}, missing))).toContain(missing);
    const broken = toml('store = "postgres://mesh:hunter2@db/mesh');
    const refusal = refusalOf(() => readBrokerConfig({}, {}, broken));
    expect(refusal).toContain(`${broken} cannot be read: it is not valid TOML at line 1`);
    expect(refusal).not.toContain("hunter2");
  });
});

describe("the settings file", () => {
  test("in the working folder is read where it is this user's own, and no other may write it", () => {
    const found = toml('listen = "127.0.0.1:0"');
    for (const mode of [0o600, 0o644, 0o440]) {
      chmodSync(found, mode);
      expect(chooseConfigFile(undefined, found)).toBe(found);
    }
    for (const mode of [0o666, 0o620, 0o602]) {
      chmodSync(found, mode);
      expect(refusalOf(() => chooseConfigFile(undefined, found))).toContain("others may write to it");
      expect(chooseConfigFile(found)).toBe(found);
    }
    expect(chooseConfigFile(undefined, `${found}.none`)).toBeUndefined();
  });

  test("is not obeyed in a folder where others could exchange it", () => {
    const folderOfConfig = mkdtempSync(join(folder, "open-"));
    const found = join(folderOfConfig, "broker.toml");
    writeFileSync(found, 'listen = "127.0.0.1:0"', { mode: 0o600 });
    for (const mode of [0o777, 0o703]) {
      chmodSync(folderOfConfig, mode);
      expect(refusalOf(() => chooseConfigFile(undefined, found))).toContain("others may put another file in its place");
      expect(chooseConfigFile(found)).toBe(found);
    }
    for (const mode of [0o1777, 0o775, 0o700]) {
      chmodSync(folderOfConfig, mode);
      expect(chooseConfigFile(undefined, found)).toBe(found);
    }
  });

  test.skipIf(process.getuid?.() !== 0)("is not obeyed where it, or a link to it, belongs to another user", () => {
    const found = join(mkdtempSync(join(folder, "theirs-")), "broker.toml");
    symlinkSync(toml('listen = "127.0.0.1:0"'), found);
    expect(chooseConfigFile(undefined, found)).toBe(found);
    lchownSync(found, 65_534, 65_534);
    expect(refusalOf(() => chooseConfigFile(undefined, found))).toContain("another user's link");
    chownSync(found, 65_534, 65_534);
    expect(refusalOf(() => chooseConfigFile(undefined, found))).toContain("belongs to another user");
  });

  test("that was read is known by its path", () => {
    const found = toml('listen = "127.0.0.1:0"');
    expect(readBrokerConfig({}, {}, found).configFile).toBe(found);
  });
});

describe("a value that cannot be used", () => {
  test.each([
    ["listen", ["", "7600", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1", ":7600", "http://x:1", "a b:1"]],
    ["store", ["", "sqlite:", "broker.db", "postgres://x", "postgres:///x", "mysql://x/y"]],
    ["redis", ["", "localhost:6379", "redis://", "http://x"]],
    ["limiter-open", ["", "yes", "1"]],
    ["delivery-sweep-seconds", ["", "0", "86401", "1.5", "5s"]],
    ["rate-limit", ["", "6000", "0/60s", "6000/60"]],
    ["mesh-limits", ["max_topics", "max_topics:many", "max_friends:3", "dm_policy:1", "max_topics:1,"]],
    ["commit-rate-limit", ["", "1000", "0/60s", "256MiB/60s"]],
    ["max-inline-bytes", ["", "1023", "1048577", "64k", "-1", "1e5"]],
    ["dedupe-retention-days", ["", "6", "0", "forever", "7.5", "-7"]],
    ["message-retention-days", ["", "0", "36501", "7.5", "for ever"]],
    ["nightly-check", ["", "3:00", "24:00", "03:60", "never"]],
    ["connection-policy", ["", "newest", "PREFER_NEWEST"]],
    ["log-level", ["", "loud", "INFO"]],
  ])("of --%s is refused with where it came from and what it takes", (flag, texts) => {
    const known = Object.values(brokerOptions).find((option) => option.flag === flag);
    if (known === undefined) throw new Error(`there is no --${flag}`);
    for (const text of texts) {
      const refusal = refusalOf(() => readBrokerConfig({ [flag]: text }, {}, undefined));
      expect(refusal).toBe(`--${flag} is "${text}"; it takes ${known.expects}.`);
    }
    const text = texts.at(-1) ?? "";
    expect(refusalOf(() => readBrokerConfig({}, { [known.env]: text }, undefined))).toContain(
      `${known.env} is "${text}"`,
    );
    const path = toml(`${known.key} = ${JSON.stringify(text)}`);
    expect(refusalOf(() => readBrokerConfig({}, {}, path))).toContain(`${known.key} in broker.toml is "${text}"`);
  });

  test.each([
    ["store", "postgres://mesh:hunt/er2@db/mesh"],
    ["store", "mysql://mesh:hunter2@db/mesh?password=hunter2"],
    ["redis", "redis://:hunt#er2@cache"],
    ["redis", "http://:hunter2@cache?password=hunter2"],
    ["public-url", "https://me:hunter2@mesh.example.org"],
  ])("of --%s is refused without its password: %s", (flag, text) => {
    const refusal = refusalOf(() => readBrokerConfig({ [flag]: text }, {}, undefined));
    expect(refusal).toMatch(new RegExp(`^--${flag} .*; it takes `));
    expect(refusal).not.toMatch(/hunt|er2/);
  });

  test("loses to a good one that goes before it", () => {
    const config = readBrokerConfig({ "log-level": "warn" }, { CLAUDEMESH_LOG_LEVEL: "loud" }, undefined);
    expect(config.logLevel).toBe("warn");
  });
});
