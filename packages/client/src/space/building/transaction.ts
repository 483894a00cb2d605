// One transaction while its function runs: reads of one snapshot through recording views, writes to its own copy of it,
// messages to send with it. It ends as the draft of a commit, or with the ids that it could not read yet.
import { MeshError } from "@claudemesh/protocol/errors";
import { parseOwnJsonText, writeStrictJson } from "@claudemesh/protocol/json";
import { type AcceptRequest, readAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { applyWithFootprint } from "@claudemesh/protocol/spaces/apply";
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import { type EntityDocument, type EntityId, isEntityId, spaceLimits } from "@claudemesh/protocol/spaces/entity";
import { type EncodedOperation, encodeOperation, readOperation } from "@claudemesh/protocol/spaces/operation-wire";
import type { Operation, PatchOp } from "@claudemesh/protocol/spaces/operations";
import type { Touch } from "@claudemesh/protocol/spaces/touch";
import { needsSealing, type SealSend } from "../../seal/outgoing.ts";
import type { Branch } from "../session/branches.ts";
import type { Draft } from "../session/session-state.ts";
import { ownError } from "../space-errors.ts";
import { branchField, commitReads, type EntityReads } from "./commit-reads.ts";
import { ReadNode } from "./read-trie.ts";
import { viewOf } from "./recording-view.ts";

/** The argument of a transaction's function. It cannot be used after the function has returned. */
export type Tx = {
  /** The document as of the transaction's snapshot and its own writes, read-only; undefined where there is none. */
  readonly get: <T extends object = EntityDocument>(id: EntityId) => T | undefined;
  /** Like get for each id; entities that are not loaded yet are loaded together. */
  readonly getMany: <T extends object = EntityDocument>(ids: readonly EntityId[]) => (T | undefined)[];
  readonly set: (id: EntityId, document: EntityDocument) => void;
  readonly patch: (id: EntityId, patches: readonly PatchOp[]) => void;
  readonly delete: (id: EntityId) => void;
  /** A message that is accepted with the commit or not at all. A direct message is sealed here. */
  readonly send: (message: AcceptRequest) => void;
};

/** Thrown through the function where it reads an entity that is not loaded; the function runs again once it is. */
export class NotLoaded extends Error {
  readonly ids: readonly EntityId[];

  constructor(ids: readonly EntityId[]) {
    super("This entity is being loaded; the transaction's function runs again. Let this error pass.");
    this.ids = ids;
  }
}

/** The reads between two own writes of an entity. */
type Epoch = { readonly root: ReadNode; readonly ownTouches: readonly Touch[] };

type Working = {
  /** The document that the entity has within the transaction, once it is known. */
  document: EntityDocument | undefined;
  isKnown: boolean;
  touches: Touch[];
  readonly epochs: Epoch[];
};

export class Transaction implements Tx {
  readonly #branch: Branch;
  readonly #seal: SealSend | undefined;
  readonly #working = new Map<EntityId, Working>();
  readonly #operations: Operation[] = [];
  readonly #encoded: EncodedOperation[] = [];
  readonly #sends: AcceptRequest[] = [];
  readonly #missing = new Set<EntityId>();
  /** The entities on which it depends, to be watched from now on. */
  readonly #used = new Set<EntityId>();
  #patches = 0;
  #lacksSealing = false;
  #isEnded = false;

  constructor(branch: Branch, seal: SealSend | undefined) {
    this.#branch = branch;
    this.#seal = seal;
  }

  /** It sent a direct message, and the keys to seal it were not loaded. */
  get lacksSealing(): boolean {
    return this.#lacksSealing;
  }

  /** The entities that it read and that are not loaded. */
  get missing(): readonly EntityId[] {
    return [...this.#missing];
  }

  get used(): readonly EntityId[] {
    return [...this.#used];
  }

  get isEmpty(): boolean {
    return this.#operations.length === 0 && this.#sends.length === 0;
  }

  readonly get = <T extends object = EntityDocument>(id: EntityId): T | undefined => {
    this.#checkOpen();
    return this.#look(this.#load(id)) as T | undefined;
  };

  readonly getMany = <T extends object = EntityDocument>(ids: readonly EntityId[]): (T | undefined)[] => {
    this.#checkOpen();
    const unknown = ids.filter((id) => !this.#canSee(id));
    if (unknown.length > 0) throw this.#miss(unknown);
    return ids.map((id) => this.#look(this.#load(id)) as T | undefined);
  };

  readonly set = (id: EntityId, document: EntityDocument): void => this.#write({ op: "set", id, value: document });

  readonly delete = (id: EntityId): void => this.#write({ op: "delete", id });

  readonly patch = (id: EntityId, patches: readonly PatchOp[]): void => {
    if (patches.length > 0) this.#write({ op: "patch", id, patches });
  };

  readonly send = (message: AcceptRequest): void => {
    this.#checkOpen();
    if (this.#sends.length >= spaceLimits.sendsPerCommit) {
      throw new MeshError("invalid_request", `A commit has at most ${spaceLimits.sendsPerCommit} sends.`, {
        field: "sends",
      });
    }
    const copy = parseOwnJsonText(writeStrictJson(message)) as unknown as AcceptRequest;
    readAcceptRequest(copy);
    this.#sends.push(needsSealing(copy) ? this.#sealed(copy) : copy);
  };

  #sealed(message: AcceptRequest): AcceptRequest {
    if (this.#seal !== undefined) return this.#seal(message);
    this.#lacksSealing = true;
    throw new NotLoaded([]);
  }

  end(): void {
    this.#isEnded = true;
  }

  /** Everything that it did, as a commit without its localSeq. */
  draft(): Draft {
    const { name, tiers } = this.#branch;
    const reads = commitReads(
      tiers.seq,
      [...this.#working].flatMap(([id, working]) => this.#readsOf(id, working)),
    );
    const operations = this.#encoded;
    const sends = this.#sends.length === 0 ? {} : { sends: this.#sends };
    const request = (localSeq: number) => {
      const commit = { localSeq, reads, operations, ...sends, ...branchField(name) } as unknown as EncodedCommit;
      return { type: "space.commit" as const, input: { commit } };
    };
    const restsOn = new Set(reads.pending.map(({ localSeq }) => localSeq));
    return { branch: name, operations: this.#operations, restsOn, hasSends: this.#sends.length > 0, request };
  }

  #readsOf(id: EntityId, { epochs }: Working): EntityReads[] {
    const entity = this.#branch.find(id);
    if (entity === undefined || epochs.length === 0) return [];
    const reads = epochs.flatMap(({ root, ownTouches }) => root.reads().map((read) => ({ read, ownTouches })));
    return [{ entity, reads }];
  }

  #look(working: Working): unknown {
    let epoch = working.epochs.at(-1);
    if (epoch === undefined || epoch.ownTouches !== working.touches) {
      epoch = { root: new ReadNode(), ownTouches: working.touches };
      working.epochs.push(epoch);
    }
    epoch.root.isSeen = true;
    return working.document === undefined ? undefined : viewOf(working.document, epoch.root);
  }

  #write(raw: Operation): void {
    this.#checkOpen();
    const patches = this.#checkCounts(raw);
    // Encoding and decoding refuses what no space can hold. The copy protects the commit from later changes that the
    // caller makes to its own value.
    const encoded = structuredClone(encodeOperation(raw));
    const operation = readOperation(encoded, `operations.${this.#operations.length}`);
    const working = operation.op === "patch" ? this.#load(operation.id) : this.#workingOf(operation.id);
    const { document, footprint } = applyWithFootprint(working.document, operation, this.#operations.length);
    working.document = document;
    working.isKnown = true;
    working.touches = [...working.touches, ...footprint];
    this.#patches = patches;
    this.#operations.push(operation);
    this.#encoded.push(encoded);
  }

  /** The entity as the transaction sees it; throws NotLoaded where it is not loaded. */
  #load(id: EntityId): Working {
    if (!isEntityId(id))
      throw new MeshError("invalid_request", `"${id}" is no entity id: scheme:rest, 1–512 characters.`);
    const working = this.#workingOf(id);
    if (working.isKnown) return working;
    const entity = this.#branch.find(id);
    if (entity === undefined || !entity.isReadable) throw this.#miss([id]);
    this.#used.add(id);
    working.document = entity.visible.document;
    working.isKnown = true;
    return working;
  }

  #canSee(id: EntityId): boolean {
    return this.#working.get(id)?.isKnown === true || this.#branch.find(id)?.isReadable === true;
  }

  #workingOf(id: EntityId): Working {
    let working = this.#working.get(id);
    if (working === undefined) {
      working = { document: undefined, isKnown: false, touches: [], epochs: [] };
      this.#working.set(id, working);
    }
    return working;
  }

  #miss(ids: readonly EntityId[]): NotLoaded {
    for (const id of ids) this.#missing.add(id);
    return new NotLoaded(ids);
  }

  #checkOpen(): void {
    if (this.#isEnded)
      throw ownError("InvalidTransactionError", "This transaction has ended; its tx is of no use any more.");
  }

  /** The number of patches of the transaction including this operation. */
  #checkCounts(operation: Operation): number {
    const { operationsPerCommit, patchesPerCommit } = spaceLimits;
    const patches = this.#patches + (operation.op === "patch" ? operation.patches.length : 0);
    if (this.#operations.length < operationsPerCommit && patches <= patchesPerCommit) return patches;
    const message = `A commit has at most ${operationsPerCommit} operations and ${patchesPerCommit} patches.`;
    throw new MeshError("invalid_request", message, { field: "operations" });
  }
}
