// Asks the broker about a space: entities, the log, branches, merges, differences. Nothing is cached, and nothing of it
// is a transactional read.
import type { JsonValue } from "@claudemesh/protocol/json";
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import type { BranchId, EntityDocument, EntityId } from "@claudemesh/protocol/spaces/entity";
import { decodeFabric, encodeFabric } from "@claudemesh/protocol/spaces/fabric-value";
import type { BranchDiff, MergeConflict } from "@claudemesh/protocol/spaces/merge";
import { bodyOf, ownError, SpaceError } from "./space-errors.ts";
import type { SpaceRequestType, WireOutcome } from "./space-wire.ts";
import { type EntityRecord, readEntityPage, readEntityRecord } from "./sync-frame.ts";

export type Query = {
  /** Ids, or a prefix with a cursor; neither lists everything. */
  readonly ids?: readonly EntityId[];
  readonly prefix?: string;
  readonly cursor?: string;
  readonly atSeq?: number;
  readonly limit?: number;
};

export type EntityPage = {
  readonly seq: number;
  readonly items: readonly EntityRecord[];
  readonly nextCursor: string | undefined;
};

export type LogEntry = {
  readonly seq: number;
  readonly branch: BranchId;
  readonly sessionId: string;
  readonly localSeq: number;
  readonly author: string;
  readonly committedAt: number;
  /** As it was committed, with encoded values; for branches, what was done to them. */
  readonly original: EncodedCommit | { readonly cmd: string; readonly args: object };
  readonly resolution: { readonly seq: number };
  readonly invocationRef: string | null;
  readonly authorizationRef: string | null;
};

export type LogPage = {
  readonly items: readonly LogEntry[];
  readonly nextAfter: number | undefined;
  /** With `before` and `newest`: the `before` of the page with older entries; undefined at the beginning. */
  readonly prevBefore: number | undefined;
};
/**
 * From the beginning; else after a seq, before one, or the end of the log. Entries are in the order of seq in each
 * case.
 */
export type LogQuery = {
  readonly after?: number;
  readonly before?: number;
  readonly newest?: boolean;
  readonly limit?: number;
};

/** A document, or null to delete, for each entity that is in conflict. */
export type Resolutions = { readonly [id: EntityId]: EntityDocument | null };

export type Proposal = Pick<EncodedCommit, "branch" | "reads" | "operations" | "merge">;

export type ProposedMerge =
  | { readonly status: "ready"; readonly proposal: Proposal; readonly merged: readonly EntityId[] }
  | { readonly status: "conflict"; readonly conflicts: readonly MergeConflict[] }
  | { readonly status: "up_to_date" };

export class Reader {
  readonly #send: (type: SpaceRequestType, input: object) => Promise<WireOutcome>;

  /** `send` adds the space's name, and asks again where a connection broke. */
  constructor(send: (type: SpaceRequestType, input: object) => Promise<WireOutcome>) {
    this.#send = send;
  }

  async entity(branch: BranchId, id: EntityId, atSeq?: number): Promise<EntityDocument | undefined> {
    try {
      const record = readEntityRecord(
        await this.#ask("space.entity", { entityId: id, branch, ...(atSeq !== undefined && { atSeq }) }),
      );
      if (record === undefined) throw ownError("MalformedAnswerError");
      return record.document;
    } catch (error) {
      if (error instanceof SpaceError && error.code === "entity_not_found") return undefined;
      throw error;
    }
  }

  async query(branch: BranchId, query: Query): Promise<EntityPage> {
    try {
      const page = readEntityPage(await this.#ask("space.query", { branch, ...query }));
      if (page === undefined) throw ownError("MalformedAnswerError");
      return page;
    } catch (error) {
      const { ids = [] } = query;
      if (!(error instanceof SpaceError) || error.code !== "payload_too_large" || ids.length < 2) throw error;
      return this.#queryHalves(branch, query, ids);
    }
  }

  /** These ids are too many for one answer, so two requests ask for them, as of one seq. */
  async #queryHalves(branch: BranchId, query: Query, ids: readonly EntityId[]): Promise<EntityPage> {
    const middle = Math.ceil(ids.length / 2);
    const first = await this.query(branch, { ...query, ids: ids.slice(0, middle) });
    const second = await this.query(branch, { ...query, ids: ids.slice(middle), atSeq: first.seq });
    return { ...first, items: [...first.items, ...second.items] };
  }

  async *list(branch: BranchId, prefix: string): AsyncGenerator<EntityRecord> {
    let page = await this.query(branch, { prefix });
    for (;;) {
      yield* page.items;
      if (page.nextCursor === undefined) return;
      page = await this.query(branch, { prefix, cursor: page.nextCursor, atSeq: page.seq });
    }
  }

  async log({ after, before, newest, limit }: LogQuery): Promise<LogPage> {
    const body = await this.#ask("space.log", {
      ...(after !== undefined && { after }),
      ...(before !== undefined && { before }),
      ...(newest !== undefined && { newest }),
      ...(limit !== undefined && { limit }),
    });
    if (!Array.isArray(body.items)) throw ownError("MalformedAnswerError");
    const seqOf = (value: unknown) => (typeof value === "number" ? value : undefined);
    return { items: body.items, nextAfter: seqOf(body.nextAfter), prevBefore: seqOf(body.prevBefore) };
  }

  async branches(after?: BranchId, limit?: number): Promise<Readonly<Record<string, unknown>>> {
    return this.#ask("space.branches", {
      ...(after !== undefined && { after }),
      ...(limit !== undefined && { limit }),
    });
  }

  async diff(source: BranchId, target: BranchId): Promise<BranchDiff> {
    const { added, removed, modified } = await this.#ask("space.diff", { source, target });
    if (![added, removed, modified].every(Array.isArray)) throw ownError("MalformedAnswerError");
    return { added, removed, modified } as BranchDiff;
  }

  async propose(source: BranchId, target: BranchId, resolutions: Resolutions = {}): Promise<ProposedMerge> {
    const entries = Object.entries(resolutions).map(([id, document]) => [id, encodeFabric(document)]);
    const body = await this.#ask("space.merge.propose", {
      source,
      target,
      ...(entries.length > 0 && { resolutions: Object.fromEntries(entries) as object }),
    });
    switch (body.status) {
      case "ready":
        return body as unknown as ProposedMerge;
      case "up_to_date":
        return { status: "up_to_date" };
      case "conflict":
        return { status: "conflict", conflicts: (body.conflicts as readonly MergeConflict[]).map(readConflict) };
      default:
        throw ownError("MalformedAnswerError");
    }
  }

  async #ask(type: SpaceRequestType, input: object): Promise<Readonly<Record<string, unknown>>> {
    return bodyOf(await this.#send(type, input), type);
  }
}

function readConflict({ id, source, target, ancestor }: MergeConflict): MergeConflict {
  const decode = (document: unknown) => decodeFabric(document as JsonValue) as EntityDocument | null;
  return { id, source: decode(source), target: decode(target), ancestor: decode(ancestor) };
}
