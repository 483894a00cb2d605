// A mesh in one process: one broker, some daemons, the network between them, and time. Further kinds of actors find
// their place here: whatever has a host, lives on it and keeps its disk.
import { memberKeysFromSeed } from "@claudemesh/client/keys";
import { loadSealer } from "@claudemesh/client/seal";
import type { Mesh } from "@claudemesh/members/ports";
import { createSqliteMembersStore } from "@claudemesh/members/sqlite";
import type { MessagesStore } from "@claudemesh/messages/ports";
import { createSqliteMessagesStore } from "@claudemesh/messages/sqlite";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { bytesFrom, streamOf } from "../core/chance.ts";
import { queueNames, type Settings, topicNames } from "../core/plan.ts";
import { BrokerActor, type BrokerSetup } from "./broker.ts";
import { DaemonActor, type DaemonPlant } from "./daemon.ts";
import type { Disk } from "./disk.ts";
import { EventLog } from "./event-log.ts";
import { Host, type Surroundings } from "./host.ts";
import { Network, Wire } from "./network.ts";
import { Scheduler } from "./scheduler.ts";

/** Faults in the code itself, for showing that the oracles find them. */
export type Plants = { readonly broker?: BrokerSetup["plant"]; readonly daemon?: DaemonPlant };

export class World {
  readonly settings: Settings;
  readonly scheduler = new Scheduler();
  readonly log = new EventLog();
  readonly surroundings: Surroundings;
  readonly network: Network;
  readonly plants: Plants;
  readonly daemons: DaemonActor[] = [];
  #broker: BrokerActor | undefined;
  #leaptMs = 0;
  onBug: (error: unknown) => void = (error) => {
    throw error;
  };

  constructor(settings: Settings, plants: Plants) {
    this.settings = settings;
    this.plants = plants;
    const { scheduler, log } = this;
    this.surroundings = {
      scheduler,
      log,
      seed: settings.seed,
      leaptMs: () => this.#leaptMs,
      onBug: (error) => this.onBug(error),
    };
    this.network = new Network(this.surroundings);
  }

  get broker(): BrokerActor {
    if (this.#broker === undefined) throw new Error("the world has no broker yet");
    return this.#broker;
  }

  /** Time passes and everybody sleeps through it. */
  leap(byMs: number): void {
    this.#leaptMs += byMs;
    this.log.add(this.scheduler.nowMs, `everybody sleeps for ${byMs} ms`);
  }

  actorOn(host: number): BrokerActor | DaemonActor {
    return host === 0 ? this.broker : this.daemonAt(host - 1);
  }

  daemonAt(number: number): DaemonActor {
    const daemon = this.daemons[number];
    if (daemon === undefined) throw new Error(`there is no daemon ${number}`);
    return daemon;
  }

  async populate(): Promise<void> {
    const { settings, network } = this;
    const host = this.#host(0, "broker");
    const { broker: plant } = this.plants;
    this.#broker = await BrokerActor.create({ host, network, settings, ...(plant && { plant }) });
    const keys = Array.from({ length: settings.daemons }, (_, number) =>
      memberKeysFromSeed(bytesFrom(streamOf(settings.seed, `keys ${number}`))(32)),
    );
    const members = keys.map(({ ed25519 }, number) => ({ pubkey: ed25519.public_key, name: `daemon-${number}` }));
    this.broker.mesh = await found(this.broker.disk, host.wallMs(), settings, members);
    for (const [number, memberKeys] of keys.entries()) {
      const { daemon: daemonPlant } = this.plants;
      this.daemons.push(
        await DaemonActor.create({
          host: this.#host(number + 1, `daemon-${number}`),
          network,
          wire: new Wire(),
          settings,
          mesh: { ...this.broker.mesh, broker: "simulated", member_name: `daemon-${number}` },
          keys: memberKeys,
          sealer: await loadSealer(memberKeys),
          ...(daemonPlant && { plant: daemonPlant }),
        }),
      );
    }
    this.broker.start();
    for (const daemon of this.daemons) daemon.start();
  }

  #host(number: number, name: string): Host {
    return new Host(name, this.surroundings, this.settings.skewMs[number] ?? 0);
  }
}

/** The mesh as it is before anything happens: all are members, topics have subscribers, the queue is there. */
async function found(
  disk: Disk,
  nowMs: number,
  settings: Settings,
  members: readonly { readonly pubkey: string; readonly name: string }[],
): Promise<Mesh> {
  const commit = new GroupCommit(disk, { nextTurn: queueMicrotask });
  const store = createSqliteMembersStore(disk, commit);
  const random = streamOf(settings.seed, "mesh");
  const id = createUuidV7Generator({ nowMs: () => nowMs, randomBytes: bytesFrom(random) })();
  const mesh = { id, name: "simulated" };
  const [owner, ...others] = members;
  if (owner === undefined) throw new Error("a mesh has a member");
  await store.createMesh(mesh, owner, nowMs);
  for (const member of others) {
    const secretHash = bytesFrom(random)(32);
    await store.addInvite(id, { secretHash, createdBy: owner.pubkey, expiresAt: nowMs + 1_000 }, nowMs);
    await store.join(id, secretHash, member, nowMs);
  }
  const messages = createSqliteMessagesStore(disk, commit, settings.rateLimit, { saw: () => undefined });
  await foundPlaces(messages, id, nowMs, members);
  return mesh;
}

async function foundPlaces(
  { topics, queues }: MessagesStore,
  meshId: string,
  nowMs: number,
  members: readonly { readonly pubkey: string }[],
): Promise<void> {
  const createdBy = members[0]?.pubkey ?? "";
  for (const name of topicNames) {
    await topics.create(meshId, { name, postPolicy: "members", createdBy }, nowMs);
    for (const { pubkey } of members) await topics.subscribe(meshId, name, pubkey, nowMs);
  }
  for (const queue of queueNames) await queues.create(meshId, { id: queue, maxDeliveries: 3, createdBy }, nowMs);
}
