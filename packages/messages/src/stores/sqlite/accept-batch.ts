// What the accepts of one transaction have in common: which members are live, which topics and subscriptions exist, and the last
// history id. It is read once and stays valid for as long as no other job writes in between, which is one batch.
// Why: docs/tuning-log.md#accepts-share-a-turn.
import { isLiveMember } from "@claudemesh/members/sqlite";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { PostPolicy } from "../../ports.ts";
import { DeliveryBatch } from "./delivery-batch.ts";

/** `subscribers` are the live members among a topic's subscribers. */
export class TopicSnapshot {
  readonly postPolicy: PostPolicy;
  readonly #subscribers: readonly string[];
  readonly #others = new Map<string, readonly string[]>();

  constructor(postPolicy: PostPolicy, subscribers: readonly string[]) {
    this.postPolicy = postPolicy;
    this.#subscribers = subscribers;
  }

  isSubscribed(pubkey: string): boolean {
    return this.#subscribers.includes(pubkey);
  }

  /** Every subscriber but the sender. Returns the same list each time. */
  recipientsOf(sender: string): readonly string[] {
    let others = this.#others.get(sender);
    if (others === undefined) {
      others = this.#subscribers.filter((pubkey) => pubkey !== sender);
      this.#others.set(sender, others);
    }
    return others;
  }
}

export class AcceptBatch {
  readonly tx: Sqlite;
  readonly #meshes = new Map<string, MeshSnapshot>();

  constructor(tx: Sqlite) {
    this.tx = tx;
  }

  mesh(meshId: string): MeshSnapshot {
    let mesh = this.#meshes.get(meshId);
    if (mesh === undefined) {
      mesh = new MeshSnapshot(this.tx, meshId);
      this.#meshes.set(meshId, mesh);
    }
    return mesh;
  }

  /** Writes the deliveries and the last history id. Must run in the same transaction, after the last accept. */
  finish(): void {
    for (const mesh of this.#meshes.values()) mesh.finish();
  }
}

export class MeshSnapshot {
  readonly deliveries: DeliveryBatch;
  readonly #tx: Sqlite;
  readonly #meshId: string;
  readonly #live = new Map<string, boolean>();
  readonly #fencing = new Map<string, boolean>();
  readonly #topics = new Map<string, TopicSnapshot | undefined>();
  readonly #queues = new Map<string, boolean>();
  /** Undefined before it is read, and where the mesh has no counter row yet. */
  #stored: number | undefined;
  #last: number | undefined;

  constructor(tx: Sqlite, meshId: string) {
    this.#tx = tx;
    this.#meshId = meshId;
    this.deliveries = new DeliveryBatch(tx, meshId);
  }

  isLive(pubkey: string): boolean {
    return this.#readOnce(this.#live, pubkey, isLiveMember);
  }

  isFenced(sender: string, clientMessageId: string): boolean {
    const isFencing = this.#readOnce(this.#fencing, sender, hasFences);
    return isFencing && isFenced(this.#tx, this.#meshId, sender, clientMessageId);
  }

  hasQueue(id: string): boolean {
    return this.#readOnce(this.#queues, id, hasQueue);
  }

  topic(name: string): TopicSnapshot | undefined {
    return this.#readOnce(this.#topics, name, selectTopic);
  }

  /** The history id of the next send that is accepted. */
  nextHistoryId(): number {
    if (this.#last === undefined) {
      this.#stored = selectLastHistoryId(this.#tx, this.#meshId);
      this.#last = this.#stored ?? 0;
    }
    return this.#last + 1;
  }

  tookHistoryId(historyId: number): void {
    this.#last = historyId;
  }

  finish(): void {
    this.deliveries.finish();
    if (this.#last === undefined || this.#last === (this.#stored ?? 0)) return;
    if (this.#stored === undefined) {
      this.#tx
        .sql("INSERT INTO mesh_history_counter (mesh_id, last_history_id) VALUES (?, ?)")
        .run(this.#meshId, this.#last);
    } else {
      this.#tx
        .sql("UPDATE mesh_history_counter SET last_history_id = ? WHERE mesh_id = ?")
        .run(this.#last, this.#meshId);
    }
    this.#stored = this.#last;
  }

  #readOnce<T>(known: Map<string, T>, key: string, read: (tx: Sqlite, meshId: string, key: string) => T): T {
    const value = known.get(key);
    if (value !== undefined || known.has(key)) return value as T;
    const fresh = read(this.#tx, this.#meshId, key);
    known.set(key, fresh);
    return fresh;
  }
}

function hasQueue(tx: Sqlite, meshId: string, id: string): boolean {
  return tx.sql("SELECT 1 FROM queue WHERE mesh_id = ? AND id = ?").get(meshId, id) !== undefined;
}

export function isFenced(db: Sqlite, meshId: string, senderPubkey: string, clientMessageId: string): boolean {
  const row = db
    .sql("SELECT 1 FROM client_message_fence WHERE mesh_id = ? AND sender_pubkey = ? AND client_message_id = ?")
    .get(meshId, senderPubkey, clientMessageId);
  return row !== undefined;
}

function hasFences(tx: Sqlite, meshId: string, senderPubkey: string): boolean {
  const row = tx
    .sql("SELECT 1 FROM client_message_fence WHERE mesh_id = ? AND sender_pubkey = ? LIMIT 1")
    .get(meshId, senderPubkey);
  return row !== undefined;
}

function selectTopic(tx: Sqlite, meshId: string, name: string): TopicSnapshot | undefined {
  const topic = tx
    .sql<{ post_policy: PostPolicy }>("SELECT post_policy FROM topic WHERE mesh_id = ? AND name = ?")
    .get(meshId, name);
  if (topic === undefined) return undefined;
  const rows = tx
    .sql<{ member_pubkey: string }>(
      `SELECT s.member_pubkey FROM topic_subscription s
       JOIN member m ON m.mesh_id = s.mesh_id AND m.pubkey = s.member_pubkey AND m.revoked_at IS NULL
       WHERE s.mesh_id = ? AND s.topic = ?`,
    )
    .all(meshId, name);
  return new TopicSnapshot(
    topic.post_policy,
    rows.map((row) => row.member_pubkey),
  );
}

function selectLastHistoryId(tx: Sqlite, meshId: string): number | undefined {
  return tx
    .sql<{ last_history_id: number }>("SELECT last_history_id FROM mesh_history_counter WHERE mesh_id = ?")
    .get(meshId)?.last_history_id;
}
