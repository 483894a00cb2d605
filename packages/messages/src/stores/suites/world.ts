// The small mesh that the messages suites work on: members, topics, sends and what they leave in the tables. Back ends
// supply the harness; SQL here is what both understand. No assertions.
import { sha256 } from "@claudemesh/members/sha256";
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { readAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import type { AcceptResult } from "@claudemesh/protocol/messages/accept-result";
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import { fingerprint } from "@claudemesh/protocol/messages/fingerprint";
import type { RateLimit } from "../../core/rate-limit.ts";
import type { FateResult, FenceRequest, MessagesStore, PostPolicy } from "../../ports.ts";
import { type AcceptPorts, acceptMessage } from "../../services/accept.ts";

export type Row = Readonly<Record<string, unknown>>;

export interface OpenMessages {
  readonly store: MessagesStore;
  /** Runs one statement, in a transaction of its own where it writes. */
  query(sql: string): Promise<Row[]>;
  close(): Promise<void>;
}

export interface MessagesHarness {
  /** An empty database with the tables of members and messages. */
  reset(): Promise<void>;
  /** A store with a connection of its own to that database. */
  open(rate: RateLimit): Promise<OpenMessages>;
  /** The full name of a table. */
  table(name: string): string;
  /** A trigger that makes inserts into the table fail, all or those for which the condition on NEW holds. */
  failingTrigger(name: string, table: string, condition: string): { create: string; drop: string };
}

/** More than any test spends. */
export const ampleRate: RateLimit = { limit: 1_000_000, windowSeconds: 60 };

/** The rows of one mesh, by what they are. */
export type Effects = Record<"dedupe" | "message" | "history" | "delivery" | "mention", number>;

export const noEffects: Effects = { dedupe: 0, message: 0, history: 0, delivery: 0, mention: 0 };

export class World {
  readonly meshId: string;
  nowMs = 1_700_000_000_000;
  readonly woken: (readonly string[])[] = [];
  readonly #harness: MessagesHarness;
  readonly #opened: OpenMessages[] = [];
  #rate: RateLimit;
  #nextMember = 1;
  #nextId = 1;

  private constructor(harness: MessagesHarness, meshId: string, rate: RateLimit) {
    this.#harness = harness;
    this.meshId = meshId;
    this.#rate = rate;
  }

  static async start(harness: MessagesHarness, rate: RateLimit = ampleRate): Promise<World> {
    await harness.reset();
    const world = new World(harness, "mesh-1", rate);
    await world.openAnother();
    await world.addMesh(world.meshId);
    return world;
  }

  /** The same database seen by another mesh. */
  async startOther(meshId: string): Promise<World> {
    const other = new World(this.#harness, meshId, this.#rate);
    await other.openAnother();
    await other.addMesh(meshId);
    return other;
  }

  get store(): MessagesStore {
    return this.#first.store;
  }

  get #first(): OpenMessages {
    const [first] = this.#opened;
    if (first === undefined) throw new Error("the world is closed");
    return first;
  }

  async openAnother(): Promise<MessagesStore> {
    const opened = await this.#harness.open(this.#rate);
    this.#opened.push(opened);
    return opened.store;
  }

  async close(): Promise<void> {
    for (const opened of this.#opened.splice(0)) await opened.close();
  }

  /** As after a restart of the broker. */
  async reopen(rate: RateLimit = this.#rate): Promise<void> {
    this.#rate = rate;
    await this.close();
    await this.openAnother();
  }

  query(sql: string): Promise<Row[]> {
    return this.#first.query(sql);
  }

  table(name: string): string {
    return this.#harness.table(name);
  }

  private async addMesh(meshId: string): Promise<void> {
    await this.query(
      `INSERT INTO ${this.table("mesh")} (id, name, created_at) VALUES ('${meshId}', 'name-of-${meshId}', 1)`,
    );
  }

  /** Returns the new member's public key. */
  async addMember(): Promise<string> {
    const pubkey = (this.#nextMember++).toString(16).padStart(64, "0");
    await this.query(`INSERT INTO ${this.table("member")} (mesh_id, pubkey, name, role, joined_at)
      VALUES ('${this.meshId}', '${pubkey}', 'm', 'member', 1)`);
    return pubkey;
  }

  async threeMembers(): Promise<[string, string, string]> {
    return [await this.addMember(), await this.addMember(), await this.addMember()];
  }

  async revoke(pubkey: string): Promise<void> {
    await this.query(`UPDATE ${this.table("member")} SET revoked_at = ${this.nowMs}
      WHERE mesh_id = '${this.meshId}' AND pubkey = '${pubkey}'`);
  }

  async addTopic(name: string, subscribers: readonly string[] = [], postPolicy: PostPolicy = "members"): Promise<void> {
    await this.store.topics.create(this.meshId, { name, postPolicy, createdBy: "former-member" }, this.nowMs);
    for (const pubkey of subscribers) await this.store.topics.subscribe(this.meshId, name, pubkey, this.nowMs);
  }

  async addQueue(id: string): Promise<void> {
    await this.query(`INSERT INTO ${this.table("queue")} (mesh_id, id, max_deliveries, created_by, created_at)
      VALUES ('${this.meshId}', '${id}', 5, 'former-member', 1)`);
  }

  accept(sender: string, request: AcceptRequest, overrides: Partial<AcceptPorts> = {}): Promise<AcceptResult> {
    const ports: AcceptPorts = {
      store: this.store.accepts,
      nowMs: () => this.nowMs,
      nextId: () => `broker-${String(this.#nextId++).padStart(8, "0")}`,
      inlineBytes: 1_048_576,
      takesUnsealed: async () => true,
      dedupeRetentionMs: 365 * 86_400_000,
      afterLookUp: () => undefined,
      onAccepted: (_meshId, recipients) => this.woken.push(recipients),
      ...overrides,
    };
    return acceptMessage(ports, { meshId: this.meshId, pubkey: sender }, request);
  }

  fenceRequest(sender: string, request: AcceptRequest): FenceRequest {
    const { clientMessageId, envelope } = readAcceptRequest(request);
    const bytes = fingerprint(sha256, envelope);
    return { meshId: this.meshId, senderPubkey: sender, clientMessageId, fingerprint: bytes };
  }

  fence(sender: string, request: AcceptRequest, store: MessagesStore = this.store): Promise<FateResult> {
    return store.fences.fence(this.fenceRequest(sender, request), this.nowMs, undefined);
  }

  fate(sender: string, request: AcceptRequest): Promise<FateResult> {
    return this.store.fences.findFate(this.fenceRequest(sender, request));
  }

  async effects(): Promise<Effects> {
    const count = async (name: string): Promise<number> => {
      const [row] = await this.query(`SELECT count(*) AS n FROM ${this.table(name)} WHERE mesh_id = '${this.meshId}'`);
      return Number(row?.n);
    };
    return {
      dedupe: await count("client_message_dedupe"),
      message: (await count("topic_message")) + (await count("message_queue")),
      history: await count("message_history"),
      delivery: await count("delivery_queue"),
      mention: await count("mention_index"),
    };
  }

  /** Inserts into the table fail until the returned function is called. */
  async failInserts(name: string, condition = "1 = 1"): Promise<() => Promise<void>> {
    const trigger = this.#harness.failingTrigger(`fail_${name}`, this.table(name), condition);
    await this.query(trigger.create);
    return async () => {
      await this.query(trigger.drop);
    };
  }
}

export function send(clientMessageId: string, destination: Destination, body = "hello"): AcceptRequest {
  return { client_message_id: clientMessageId, destination: { ...destination }, body };
}

export function dm(recipient: string): Destination {
  return { kind: "dm", ref: recipient };
}

export function topic(name: string): Destination {
  return { kind: "topic", ref: name };
}

export function queue(id: string): Destination {
  return { kind: "queue", ref: id };
}

/** Everyone who calls waits until `count` have called. */
export function createBarrier(count: number): () => Promise<void> {
  let waiting = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  return () => {
    waiting += 1;
    if (waiting === count) resolve();
    return promise;
  };
}
