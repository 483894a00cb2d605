// Our own broker and daemon as targets of the conformance kit, in this process: the real ones, with short pauses between
// tries, so that what the kit breaks is mended soon.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrokerFlags, readBrokerConfig } from "@claudemesh/broker/config";
import { startBroker } from "@claudemesh/broker/start";
import { createMesh, joinMesh, withBroker } from "@claudemesh/client/broker";
import { ensureMeshDir, meshPaths, writeMeshConfig } from "@claudemesh/client/home";
import { generateMemberKeys, identityOf, writeKeyFile } from "@claudemesh/client/keys";
import { openLink } from "@claudemesh/client/link";
import { type RunningDaemon, startDaemon } from "@claudemesh/daemon/start";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";

export type BrokerTarget = {
  readonly url: string;
  readonly adminToken: string;
  /** The secret half of its key, with which the kit announces in its name. */
  /** Of a broker on SQLite, which keeps it beside its store. */
  readonly keySeed: () => string;
  readonly budget: number;
  readonly stop: () => Promise<void>;
};

const budget = 1_500;

export async function startBrokerTarget(more: BrokerFlags = {}): Promise<BrokerTarget> {
  const folder = mkdtempSync(join(tmpdir(), "cm-conformance-"));
  const flags = {
    listen: "127.0.0.1:0",
    store: `sqlite:${join(folder, "broker.db")}`,
    "admin-token-file": join(folder, "admin-token"),
    "log-level": "silent",
    "rate-limit": `${budget}/60s`,
    ...more,
  };
  const broker = await startBroker(readBrokerConfig(flags, {}, undefined));
  return {
    url: broker.url,
    adminToken: readFileSync(broker.adminTokenFile, "utf8").trim(),
    keySeed: () => readFileSync(`${broker.storePath}.broker-key`, "utf8").trim(),
    budget,
    stop: async () => {
      await broker.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A mesh that has no member but its owner, who has invited some. */
export async function createMeshWithOwner(broker: BrokerTarget, inviteCount: number) {
  const keys = generateMemberKeys();
  const mesh = `mesh-${keys.ed25519.public_key.slice(0, 12)}`;
  const { url, adminToken } = broker;
  const { mesh_id: meshId } = await createMesh({ broker: url, adminToken, name: mesh, ownerName: "olga", keys });
  const as = { broker: url, identity: identityOf(keys, meshId), agent: "conformance" };
  return withBroker(as, async (call) => {
    const invites: string[] = [];
    for (let n = 0; n < inviteCount; n++) {
      invites.push(((await call("invite.create", {})) as { invite: string }).invite);
    }
    const { token } = (await call("token.create", {})) as { token: string };
    return { mesh, meshId, ownerToken: token, invites };
  });
}

export type DaemonTarget = {
  readonly socket: string;
  readonly url: () => string;
  readonly token: () => string;
  /** A bearer token of another member of its mesh. */
  readonly peerToken: string;
  readonly stop: () => Promise<void>;
};

/** A daemon that looks for its broker at `link`, and comes back by itself when it ends. */
export async function startDaemonTarget(broker: BrokerTarget, link: string): Promise<DaemonTarget> {
  const home = mkdtempSync(join(tmpdir(), "cm-conformance-"));
  const keys = generateMemberKeys();
  const { mesh: name, meshId: mesh_id, ownerToken, invites } = await createMeshWithOwner(broker, 1);
  const [invite = ""] = invites;
  await joinMesh({ invite: decodeInvite(invite), name: "daemon", keys });
  const paths = meshPaths(home, name);
  ensureMeshDir(paths);
  writeKeyFile(paths.keypair, keys);
  writeMeshConfig(paths, { id: mesh_id, name, broker: link, member_name: "daemon" });
  let daemon: RunningDaemon;
  let stopping = false;
  const start = async () => {
    const backoff = { backoff_min_ms: 10, backoff_max_ms: 100, request_timeout_ms: 1_500 };
    daemon = await startDaemon({
      home,
      mesh: name,
      env: {},
      overrides: { outbox: backoff, ipc: { tcp_enabled: true } },
      connect: (options) => openLink({ ...options, backoff: { minMs: 10, maxMs: 100 } }),
    });
    void daemon.stopped.then(() => (stopping ? undefined : start()));
  };
  await start();
  return {
    socket: paths.sock,
    url: () => `http://127.0.0.1:${daemon.httpPort}`,
    token: () => readFileSync(paths.localToken, "utf8").trim(),
    peerToken: ownerToken,
    stop: async () => {
      stopping = true;
      await daemon.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** A port that nothing listens on. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}
