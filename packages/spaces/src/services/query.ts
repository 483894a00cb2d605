// Reading a space: entities now or as of a seq, one, many or by prefix; the log; branches; verdicts. Each answer is one
// moment: the seq is read first, and everything else as of it.
import { MeshError } from "@claudemesh/protocol/errors";
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { defaultBranch, type EntityDocument } from "@claudemesh/protocol/spaces/entity";
import type { Work } from "@claudemesh/protocol/spaces/work";
import { type Branch, segmentsOf } from "../core/branch-lineage.ts";
import type { EntityState } from "../core/entity-history.ts";
import { endOfPrefix } from "../core/id-range.ts";
import { readVerdict, type Verdict } from "../core/verdict.ts";
import type { Flow } from "../ports/flow.ts";
import type { CommitRow, InvocationRow, LogCursor, SpaceRef } from "../ports/rows.ts";
import type { SpacePorts, SpaceView } from "../ports.ts";
import { findBranch } from "./branches.ts";
import { readEntities, readForTurn } from "./read-entities.ts";

type Ports = Pick<SpacePorts, "store">;

export type FoundEntity = {
  readonly id: string;
  /** Of the last write. */
  readonly seq: number;
  readonly branch: string;
  /** Undefined for a deleted entity. */
  readonly document: EntityDocument | undefined;
};

export type Moment = {
  readonly branch?: string | undefined;
  readonly atSeq?: number | undefined;
  /** Counts what reading costs, and bounds it to one turn of the event loop. Everything is read where it is left out. */
  readonly work?: Work | undefined;
};

type ResolvedMoment = { readonly branch: Branch; readonly atSeq: number };

/** Throws where there is no such space, branch or seq. */
export function* resolveMoment(view: SpaceView, { branch = defaultBranch, atSeq }: Moment): Flow<ResolvedMoment> {
  const space = yield* view.findSpace();
  if (space === undefined) throw new MeshError("space_not_found");
  if (atSeq !== undefined && atSeq > space.lastSeq) {
    throw new MeshError("seq_out_of_range", undefined, { field: "atSeq", seq: space.lastSeq });
  }
  return { branch: yield* findBranch(view, branch), atSeq: atSeq ?? space.lastSeq };
}

export async function readEntity(ports: Ports, space: SpaceRef, id: string, moment: Moment): Promise<FoundEntity> {
  const { items } = await readMany(ports, space, [id], moment);
  const [found] = items;
  if (found === undefined) throw new MeshError("entity_not_found", undefined, { id });
  return found;
}

/** `read`: how many of the ids, from the first on, were looked at. The caller asks for the rest in another turn. */
export type FoundEntities = { readonly seq: number; readonly items: readonly FoundEntity[]; readonly read: number };

/** Those that were ever written, in the order of the ids. */
export function readMany(ports: Ports, space: SpaceRef, ids: readonly string[], query: Moment): Promise<FoundEntities> {
  return ports.store.read(space, function* (view) {
    const moment = yield* resolveMoment(view, query);
    return { seq: moment.atSeq, ...(yield* readAt(view, moment, ids, query.work)) };
  });
}

export function* readAt(
  view: SpaceView,
  { branch, atSeq }: ResolvedMoment,
  ids: readonly string[],
  work?: Work,
): Flow<Pick<FoundEntities, "items" | "read">> {
  const asks = ids.map((entityId) => ({ entityId, branch, atSeq }));
  const states = yield* work === undefined ? readEntities(view, asks) : readForTurn(view, asks, work);
  return { items: ids.flatMap((id, index) => found(id, branch, states[index])), read: states.length };
}

/** Where a listing goes on. Undefined at its end. */
export function cursorBehind(ids: readonly string[], read: number, limit: number): string | undefined {
  return read === ids.length && ids.length < limit ? undefined : ids[read - 1];
}

function found(id: string, branch: Branch, state: EntityState | undefined): FoundEntity[] {
  return state === undefined ? [] : [{ id, seq: state.seq, branch: branch.name, document: state.document }];
}

export type PrefixQuery = Moment & {
  readonly prefix: string;
  /** The last id of the page before. */
  readonly cursor?: string | undefined;
  readonly limit: number;
};

export type EntityPage = {
  readonly seq: number;
  readonly items: readonly FoundEntity[];
  /** Undefined on the last page. A page may hold fewer than were asked for and not be the last. */
  readonly nextCursor: string | undefined;
};

/** Entities that are there, in the order of their ids. Not a transactional read: no commit can rest on it. */
export function listByPrefix(ports: Ports, space: SpaceRef, query: PrefixQuery): Promise<EntityPage> {
  return ports.store.read(space, function* (view) {
    const moment = yield* resolveMoment(view, query);
    const ids = yield* view.listEntityIds({
      branches: segmentsOf(moment.branch, moment.atSeq).map(({ branch }) => branch),
      ...rangeOf(query.prefix, query.cursor),
      afterSeq: 0,
      limit: query.limit,
    });
    const { items: all, read } = yield* readAt(view, moment, ids, query.work);
    const items = all.filter(({ document }) => document !== undefined);
    return { seq: moment.atSeq, items, nextCursor: cursorBehind(ids, read, query.limit) };
  });
}

/** A cursor before the prefix is the beginning. */
export function rangeOf(prefix: string, cursor: string | undefined) {
  const within = cursor?.startsWith(prefix) === true ? cursor : undefined;
  return { from: within ?? prefix, fromIsTaken: within !== undefined, before: endOfPrefix(prefix) };
}

export type LogEntry = {
  readonly seq: number;
  readonly branch: string;
  readonly sessionId: string;
  readonly localSeq: number;
  readonly author: string;
  readonly committedAt: number;
  readonly original: unknown;
  readonly resolution: unknown;
  readonly invocationRef: string | null;
  readonly authorizationRef: string | null;
};

/** What a page of the log may hold; one entry always fits. */
const logPageBytes = 2_097_152;
/** After so many characters of entries others have a turn. */
const logTurnCharacters = 262_144;

export type LogPage = {
  readonly items: readonly LogEntry[];
  /** Where the page of newer entries and the page of older ones begin; undefined where there are none. */
  readonly nextAfter: number | undefined;
  readonly prevBefore: number | undefined;
};

export async function readLog(
  { store, nextTurn = setImmediate }: Pick<SpacePorts, "store" | "nextTurn">,
  space: SpaceRef,
  cursor: LogCursor,
  limit: number,
): Promise<LogPage> {
  const { lastSeq, rows } = await store.read(space, function* (view) {
    const row = yield* view.findSpace();
    if (row === undefined) throw new MeshError("space_not_found");
    return { lastSeq: row.lastSeq, rows: yield* view.readLog(cursor, { rows: limit, bytes: logPageBytes }) };
  });
  const items: LogEntry[] = [];
  let characters = 0;
  for (const row of rows) {
    if (characters > logTurnCharacters) {
      characters = 0;
      await new Promise<void>((resolve) => nextTurn(resolve));
    }
    characters += row.original.length;
    items.push(logEntry(row));
  }
  const [first, last] = [items[0]?.seq, items.at(-1)?.seq];
  return {
    items,
    nextAfter: last !== undefined && last < lastSeq ? last : undefined,
    // Every seq from 1 on is a commit of the log.
    prevBefore: first !== undefined && first > 1 ? first : undefined,
  };
}

function logEntry(row: CommitRow): LogEntry {
  return {
    seq: row.seq,
    branch: row.branch,
    sessionId: row.sessionId,
    localSeq: row.localSeq,
    author: row.memberPubkey,
    committedAt: row.committedAtMs,
    original: parseOwnJsonText(row.original),
    resolution: parseOwnJsonText(row.resolution),
    invocationRef: row.invocationRef ?? null,
    authorizationRef: row.authorizationRef ?? null,
  };
}

export function listBranches(
  ports: Ports,
  space: SpaceRef,
  after: string | undefined,
  limit: number,
): Promise<Branch[]> {
  return ports.store.read(space, function* (view) {
    if ((yield* view.findSpace()) === undefined) throw new MeshError("space_not_found");
    return yield* view.listBranches(after, limit);
  });
}

/** For the member whose session it is or was. */
export function findVerdict(
  ports: Ports,
  space: SpaceRef,
  memberPubkey: string,
  sessionId: string,
  localSeq: number,
): Promise<Verdict> {
  return ports.store.read(space, function* (view) {
    const [row] = yield* view.findVerdicts(sessionId, [localSeq]);
    if (row !== undefined && row.memberPubkey === memberPubkey) return readVerdict(row);
    if ((yield* view.findSpace()) === undefined) throw new MeshError("space_not_found");
    const session = yield* view.findSession(sessionId);
    if (session?.memberPubkey !== memberPubkey) throw new MeshError("session_not_found");
    throw new MeshError("commit_not_found", undefined, { localSeq });
  });
}

export function findInvocation(ports: Ports, space: SpaceRef, ref: string): Promise<InvocationRow | undefined> {
  return ports.store.read(space, (view) => view.findInvocation(ref));
}
