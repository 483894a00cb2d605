// A branch of a space for its user: transactions, subscriptions and reads on that branch.

import { MeshError } from "@claudemesh/protocol/errors";
import { type BranchId, type EntityDocument, type EntityId, isEntityId } from "@claudemesh/protocol/spaces/entity";
import type { Tx } from "./building/transaction.ts";
import { frozen } from "./frozen.ts";
import type { PrefixSubscriber, Subscriber } from "./notifier.ts";
import type { EntityPage, Query, Reader } from "./reader.ts";
import type { Replica } from "./replica.ts";
import type { EntityRecord } from "./sync-frame.ts";
import { runTransaction, type TransactOptions, type TransactResult } from "./transact.ts";

export type Off = () => void;

/** A branch as of an earlier seq: the server answers, nothing is cached. */
export type PastBranch = {
  readonly seq: number;
  readonly get: (id: EntityId) => Promise<EntityDocument | undefined>;
  readonly query: (query: Query) => Promise<EntityPage>;
};

export class BranchHandle {
  /** The default branch is "". */
  readonly name: BranchId;
  readonly #replica: Replica;
  readonly #reader: Reader;
  readonly #sleep: (delayMs: number) => Promise<void>;

  constructor(name: BranchId, replica: Replica, reader: Reader, sleep: (delayMs: number) => Promise<void>) {
    this.name = name;
    this.#replica = replica;
    this.#reader = reader;
    this.#sleep = sleep;
  }

  /**
   * Runs `build` on one snapshot, applies what it wrote at once, and resolves when the broker has accepted it. `build`
   * may run several times, and must do nothing but read and write through its tx.
   */
  transact<T>(build: (tx: Tx) => T, options?: TransactOptions): Promise<TransactResult<T>> {
    return runTransaction(this.#replica, this.#branch, build, this.#sleep, options);
  }

  /** Calls the subscriber for every change of the visible document, from now on; the entity is loaded if necessary. */
  subscribe(id: EntityId, subscriber: Subscriber): Off {
    checkId(id);
    this.#replica.checkAlive();
    const off = this.#replica.notifier.subscribe(this.name, id, subscriber);
    this.#replica.run(this.#replica.state.want(this.#branch, [id]));
    return off;
  }

  /** The same for every entity whose id begins with the prefix, including later ones. */
  subscribePrefix(prefix: string, subscriber: PrefixSubscriber): Off {
    this.#replica.checkAlive();
    const branch = this.#branch;
    const off = this.#replica.notifier.subscribePrefix(this.name, prefix, subscriber);
    this.#replica.run(this.#replica.state.want(branch, [], [prefix]));
    let isOff = false;
    return () => {
      if (isOff) return;
      isOff = true;
      if (off().isLast) this.#replica.run(this.#replica.state.unwantPrefix(branch, prefix));
    };
  }

  /** The visible document now, including own unconfirmed work; it is loaded first if necessary. */
  async get(id: EntityId): Promise<EntityDocument | undefined> {
    checkId(id);
    if (this.#branch.find(id)?.isReadable !== true) await this.#replica.load(this.#branch, [id]);
    return this.peek(id);
  }

  /** Like get, without waiting: undefined also where the entity is not loaded. */
  peek(id: EntityId): EntityDocument | undefined {
    return frozen(this.#branch.find(id)?.visible.document);
  }

  /** The seq up to which this replica has integrated the changes that it receives. */
  get seq(): number {
    return this.#branch.tiers.seq;
  }

  /** What the broker holds, without own unconfirmed work. Not a transactional read: no commit rests on it. */
  query(query: Query): Promise<EntityPage> {
    return this.#reader.query(this.name, query);
  }

  /** All pages of a query by prefix, entity by entity, as of the seq of the first page. */
  list(prefix: string): AsyncGenerator<EntityRecord> {
    return this.#reader.list(this.name, prefix);
  }

  at(seq: number): PastBranch {
    return {
      seq,
      get: (id) => this.#reader.entity(this.name, id, seq),
      query: (query) => this.#reader.query(this.name, { ...query, atSeq: seq }),
    };
  }

  get #branch() {
    return this.#replica.state.branches.get(this.name);
  }
}

function checkId(id: EntityId): void {
  if (!isEntityId(id))
    throw new MeshError("invalid_request", `"${id}" is no entity id: scheme:rest, 1–512 characters.`);
}
