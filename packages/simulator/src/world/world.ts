// A mesh in one process: brokers, daemons, agents, the network between them, and time. Whatever has a host lives on it,
// and its disk outlives it.

import { sqliteMigrations } from "@claudemesh/broker/testing/sqlite-backend";
import { type MemberKeys, memberKeysFromSeed } from "@claudemesh/client/keys";
import { loadSealer } from "@claudemesh/client/seal";
import type { Mesh } from "@claudemesh/members/ports";
import { createSqliteMembersStore } from "@claudemesh/members/sqlite";
import type { MessagesStore } from "@claudemesh/messages/ports";
import { createSqliteMessagesStore } from "@claudemesh/messages/sqlite";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { bytesFrom, streamOf } from "../core/chance.ts";
import { queueNames, type Settings, topicNames } from "../core/plan.ts";
import { AgentActor } from "./agent.ts";
import { BrokerActor, type Edge } from "./broker.ts";
import type { Redis, StorePlants } from "./broker-services.ts";
import { DaemonActor, type DaemonPlant } from "./daemon.ts";
import { createDisk, type Disk } from "./disk.ts";
import { EventLog } from "./event-log.ts";
import { Host, type Surroundings } from "./host.ts";
import { Network, Wire } from "./network.ts";
import { Scheduler } from "./scheduler.ts";
import { SignalBus } from "./signal-bus.ts";

/** Faults in the code itself, for showing that the oracles find them. */
export type Plants = StorePlants & { readonly daemon?: DaemonPlant };

export type Actor = BrokerActor | DaemonActor | AgentActor;

export class World {
  readonly settings: Settings;
  readonly scheduler = new Scheduler();
  readonly log = new EventLog();
  readonly surroundings: Surroundings;
  readonly network: Network;
  readonly redis: Redis;
  readonly verifier = { silentUntilMs: 0 };
  readonly plants: Plants;
  readonly brokers: BrokerActor[] = [];
  readonly daemons: DaemonActor[] = [];
  readonly agents: AgentActor[] = [];
  #leaptMs = 0;
  onBug: (error: unknown) => void = (error) => {
    throw error;
  };
  edge: Edge = () => () => undefined;

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
    this.redis = { troubledUntilMs: 0, slowMs: 0, bus: new SignalBus(this.surroundings) };
  }

  /** The first, where there are two: they share a store. */
  get broker(): BrokerActor {
    return at(this.brokers, 0);
  }

  /** Time passes and all processes sleep through it. */
  leap(byMs: number): void {
    this.#leaptMs += byMs;
    this.log.add(this.scheduler.nowMs, `all processes sleep for ${byMs} ms`);
  }

  actorOn(host: number): Actor {
    return at([this.broker, ...this.daemons, ...this.agents, ...this.brokers.slice(1)], host);
  }

  daemonAt(number: number): DaemonActor {
    return at(this.daemons, number);
  }

  agentAt(number: number): AgentActor {
    return at(this.agents, number);
  }

  async populate(): Promise<void> {
    const { settings } = this;
    const { daemons, agents = 0, brokers = 1 } = settings;
    const disk = await createDisk("broker", sqliteMigrations());
    const firstHost = this.#host(0, "broker");
    this.#addBroker(disk, firstHost);
    const keysOf = (name: string, count: number) =>
      Array.from({ length: count }, (_, number) =>
        memberKeysFromSeed(bytesFrom(streamOf(settings.seed, `${name} ${number}`))(32)),
      );
    const [daemonKeys, agentKeys] = [keysOf("keys", daemons), keysOf("agent keys", agents)];
    const mesh = await found(disk, firstHost.wallMs(), settings, {
      agents: membersOf(agentKeys, "agent"),
      daemons: membersOf(daemonKeys, "daemon"),
    });
    for (const [number, keys] of daemonKeys.entries()) await this.#addDaemon(number, keys, mesh);
    for (const [number, keys] of agentKeys.entries()) {
      const host = this.#host(1 + daemons + number, `agent-${number}`);
      this.agents.push(
        new AgentActor({ host, network: this.network, wire: new Wire(), settings, meshId: mesh.id, keys }),
      );
    }
    if (brokers > 1) this.#addBroker(disk, this.#host(1 + daemons + agents, "broker-1"));
    for (const broker of this.brokers) broker.mesh = mesh;
    for (const actor of [...this.brokers, ...this.daemons, ...this.agents]) actor.start();
  }

  /** Nothing happens any more. What SQLite holds in memory is unknown to the garbage collector and must be given back. */
  close(): void {
    for (const disk of [this.broker.disk, ...this.daemons.flatMap(({ disks }) => disks)]) disk.connection.close();
  }

  #addBroker(disk: Disk, host: Host): void {
    const { network, settings, redis, verifier, plants } = this;
    const edge = () => this.edge;
    this.brokers.push(new BrokerActor({ host, network, settings, disk, redis, verifier, plants, edge }));
  }

  async #addDaemon(number: number, keys: MemberKeys, mesh: Mesh): Promise<void> {
    const { network, settings, plants } = this;
    const name = `daemon-${number}`;
    this.daemons.push(
      await DaemonActor.create({
        host: this.#host(number + 1, name),
        network,
        wire: new Wire(),
        settings,
        mesh: { ...mesh, broker: "simulated", member_name: name },
        keys,
        sealer: await loadSealer(keys),
        ...(plants.daemon && { plant: plants.daemon }),
      }),
    );
  }

  #host(number: number, name: string): Host {
    return new Host(name, this.surroundings, this.settings.skewMs[number] ?? 0);
  }
}

function at<T>(actors: readonly T[], number: number): T {
  const actor = actors[number];
  if (actor === undefined) throw new Error(`there is no actor ${number}`);
  return actor;
}

type NewMember = { readonly pubkey: string; readonly name: string };

function membersOf(keys: readonly MemberKeys[], name: string): NewMember[] {
  return keys.map(({ ed25519 }, number) => ({ pubkey: ed25519.public_key, name: `${name}-${number}` }));
}

/** The mesh as it is before anything happens: all are members, topics have subscribers, the queue is there. */
async function found(
  disk: Disk,
  nowMs: number,
  settings: Settings,
  { agents, daemons }: { readonly agents: readonly NewMember[]; readonly daemons: readonly NewMember[] },
): Promise<Mesh> {
  const commit = new GroupCommit(disk, { nextTurn: queueMicrotask });
  const store = createSqliteMembersStore(disk, commit);
  const random = streamOf(settings.seed, "mesh");
  const id = createUuidV7Generator({ nowMs: () => nowMs, randomBytes: bytesFrom(random) })();
  const mesh = { id, name: "simulated" };
  // The first agent approves registrations, which only an owner may.
  const [owner, ...others] = [...agents, ...daemons];
  if (owner === undefined) throw new Error("a mesh has a member");
  await store.createMesh(mesh, owner, nowMs);
  for (const member of others) {
    const secretHash = bytesFrom(random)(32);
    const invite = { id: member.pubkey, secretHash, createdBy: owner.pubkey, expiresAt: nowMs + 1_000 };
    await store.addInvite(id, invite, nowMs);
    await store.join(id, secretHash, member, nowMs);
  }
  const messages = createSqliteMessagesStore(disk, commit, settings.rateLimit);
  await createTopicsAndQueues(messages, id, nowMs, daemons);
  return mesh;
}

async function createTopicsAndQueues(
  { topics, queues }: MessagesStore,
  meshId: string,
  nowMs: number,
  members: readonly NewMember[],
): Promise<void> {
  const createdBy = members[0]?.pubkey ?? "";
  for (const name of topicNames) {
    await topics.create(meshId, { name, postPolicy: "members", createdBy }, nowMs);
    for (const { pubkey } of members) await topics.subscribe(meshId, name, pubkey, nowMs);
  }
  for (const queue of queueNames) await queues.create(meshId, { id: queue, maxDeliveries: 3, createdBy }, nowMs);
}
