// Brokers side by side: real processes on one PostgreSQL database and one Redis, in one temporary folder that goes away
// with the test. Comes back on the port that it had, so that members find it again.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMeshBytes } from "@claudemesh/protocol/wire/signing";
import { callBroker, TestMember } from "./broker-harness.ts";
import { BrokerProcess } from "./broker-process.ts";
import { createPeerKeys } from "./peer-keys.ts";
import { createTestDatabase, findRedis } from "./services.ts";

export type BrokersOptions = {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly flags?: readonly string[];
};

/** A database of this test's own and a Redis; `found` is false where they are not to be had. */
export async function findServers(label: string) {
  const database = await createTestDatabase(label);
  const redis = database === undefined ? undefined : await findRedis();
  return {
    found: redis !== undefined,
    urls: { databaseUrl: database?.url ?? "", redisUrl: redis?.url ?? "" },
    stop: async () => {
      await database?.drop();
      await redis?.stop();
    },
  };
}

export class Brokers {
  readonly folder = mkdtempSync(join(tmpdir(), "cm-brokers-"));
  readonly #options: BrokersOptions;
  readonly #all: BrokerProcess[] = [];

  constructor(options: BrokersOptions) {
    this.#options = options;
  }

  get adminToken(): string {
    return readFileSync(join(this.folder, "broker.admin-token"), "utf8").trim();
  }

  /** One more broker, started. */
  async add(env: Readonly<Record<string, string>> = {}): Promise<BrokerProcess> {
    const broker = this.prepare();
    await broker.start(env);
    return broker;
  }

  prepare(): BrokerProcess {
    const { databaseUrl, redisUrl, flags = [] } = this.#options;
    const broker = new BrokerProcess(this.folder, ["--store", databaseUrl, "--redis", redisUrl, ...flags]);
    this.#all.push(broker);
    return broker;
  }

  async end(): Promise<void> {
    await Promise.all(this.#all.map((broker) => broker.kill()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Creates a mesh through one of them and returns its owner. */
export function createMeshOn(brokers: Brokers, broker: BrokerProcess, mesh: string): Promise<TestMember> {
  return createMeshAt(brokers.adminToken, broker, mesh);
}

export async function createMeshAt(adminToken: string, broker: BrokerProcess, mesh: string): Promise<TestMember> {
  const keys = createPeerKeys();
  const signed = createMeshBytes({ name: mesh, owner_name: "owner", owner_pubkey: keys.pubkey });
  const body = { name: mesh, owner: { name: "owner", pubkey: keys.pubkey }, signature: keys.sign(signed) };
  const answer = await callBroker(broker.url, "POST", "/v1/meshes", { token: adminToken, body });
  assert.equal(answer.status, 201);
  return new TestMember(broker.url, keys, answer.body);
}
