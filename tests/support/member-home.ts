// A member's home in a temporary folder with a real daemon in this process, which tries again at once when its broker is
// away. Everything ends with the test that made it.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDaemonClient, type DaemonClient, type InboxItem } from "@claudemesh/client/daemon";
import { ensureMeshDir, type MeshConfig, type MeshPaths, meshPaths, writeMeshConfig } from "@claudemesh/client/home";
import { generateMemberKeys, type MemberKeys, writeKeyFile } from "@claudemesh/client/keys";
import { openLink } from "@claudemesh/client/link";
import { type RunningDaemon, startDaemon } from "@claudemesh/daemon/start";
import { expect, onTestFinished } from "vitest";

/** How long a test asks again before it has failed. */
export const soon = { timeout: 20_000, interval: 20 };

type LogLine = Readonly<Record<string, unknown>>;

export class MemberHome {
  readonly keys: MemberKeys = generateMemberKeys();
  readonly paths: MeshPaths;
  #daemon: RunningDaemon | undefined;
  #client: DaemonClient | undefined;

  constructor() {
    const home = mkdtempSync(join(tmpdir(), "cm-"));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    this.paths = meshPaths(home, "acme");
  }

  get pubkey(): string {
    return this.keys.ed25519.public_key;
  }

  /** Makes the home one of a member. */
  enter(config: Omit<MeshConfig, "name">): void {
    ensureMeshDir(this.paths);
    writeKeyFile(this.paths.keypair, this.keys);
    writeMeshConfig(this.paths, { ...config, name: "acme" });
  }

  get daemon(): RunningDaemon {
    return this.#daemon ?? expect.unreachable("no daemon was started");
  }

  get client(): DaemonClient {
    return this.#client ?? expect.unreachable("no daemon was started");
  }

  async startDaemon(): Promise<DaemonClient> {
    const { home, sock } = this.paths;
    const overrides = { outbox: { backoff_min_ms: 5, backoff_max_ms: 20 }, ipc: { tcp_enabled: false } };
    const connect: NonNullable<Parameters<typeof startDaemon>[0]["connect"]> = (options) =>
      openLink({ ...options, backoff: { minMs: 5, maxMs: 20 } });
    const daemon = await startDaemon({ home, mesh: "acme", env: {}, overrides, connect });
    this.#daemon = daemon;
    onTestFinished(() => daemon.stop());
    const client = createDaemonClient({ socketPath: sock, timeoutMs: 10_000 });
    this.#client = client;
    onTestFinished(() => client.close());
    return client;
  }

  /** What the daemon has logged under this name. */
  events(name: string): LogLine[] {
    const lines = readFileSync(this.paths.log, "utf8").trim().split("\n");
    return lines.map((line) => JSON.parse(line) as LogLine).filter(({ event }) => event === name);
  }

  async inbox(): Promise<readonly InboxItem[]> {
    const { body } = await this.client.inbox({ limit: 100 });
    return (body as { readonly items: readonly InboxItem[] }).items;
  }

  /** Everything in the inbox once an item is there that has these fields. */
  async untilArrived(fields: Partial<InboxItem>): Promise<readonly InboxItem[]> {
    await expect
      .poll(() => this.inbox(), soon)
      .toEqual(expect.arrayContaining([expect.objectContaining(fields as Record<string, unknown>)]));
    return this.inbox();
  }
}

export async function brokerOf(client: DaemonClient): Promise<Readonly<Record<string, unknown>>> {
  const { body } = await client.health();
  return (body as { broker: Readonly<Record<string, unknown>> }).broker;
}

export async function untilOnline(client: DaemonClient): Promise<void> {
  await expect.poll(async () => (await brokerOf(client)).state, soon).toBe("online");
}
