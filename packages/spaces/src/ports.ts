// What the space services need from outside, each with its guarantee. SQLite and PostgreSQL stores owe the same.
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import type { SendsOutcome, SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import type { Work } from "@claudemesh/protocol/spaces/work";
import type { EntityChange, EntityState } from "./core/entity-history.ts";
import type { LaterWrites } from "./core/stale-reads.ts";
import type { Flow } from "./ports/flow.ts";
import type {
  Branch,
  CommitRow,
  EntityIdQuery,
  FoundWrites,
  HeadRow,
  InvocationRow,
  LayerAsk,
  LogCursor,
  MergeRow,
  OpenRow,
  RevisionRow,
  RowBound,
  SessionCursor,
  SessionRow,
  SignedWrites,
  SnapshotRow,
  SpaceRef,
  SpaceRow,
  SpaceSettings,
  Tail,
  TailAsk,
  VerdictRow,
  Write,
  WriteAsk,
} from "./ports/rows.ts";
import type { SessionTurns } from "./services/session-turns.ts";

/**
 * Looks at one space. Outside a transaction each call may see a later moment than the one before; what belongs to a
 * seq that was read first never changes, so that a view asked "as of" that seq is one moment.
 */
export type SpaceView = {
  readonly findSpace: () => Flow<SpaceRow | undefined>;
  readonly findSession: (sessionId: string) => Flow<SessionRow | undefined>;
  readonly findVerdicts: (sessionId: string, localSeqs: readonly number[]) => Flow<VerdictRow[]>;
  readonly findBranches: (names: readonly string[]) => Flow<Branch[]>;
  readonly listBranches: (after: string | undefined, limit: number) => Flow<Branch[]>;
  /**
   * At most so many entities are looked for in one question. One where each answer is there at once, so that a large one is
   * noticed before the next is read; more where a question takes a while.
   */
  readonly entitiesPerLook: number;
  /** One tail for each ask, in their order. */
  readonly readTails: (asks: readonly TailAsk[], limit: number) => Flow<Tail[]>;
  /** For each ask, in their order: writes with afterSeq < seq ≤ upTo, newest first, as many as the bound admits. */
  readonly readWrites: (asks: readonly WriteAsk[], bound: RowBound) => Flow<FoundWrites[]>;
  /** For each ask, in their order: what the commit of that seq did to the entity, operation by operation. */
  readonly readLayers: (branch: string, asks: readonly LayerAsk[]) => Flow<Write[][]>;
  /** In order, without repetition. */
  readonly listEntityIds: (query: EntityIdQuery) => Flow<string[]>;
  /** In the order of seq. The one that is nearest to the cursor is always among them. */
  readonly readLog: (cursor: LogCursor, bound: RowBound) => Flow<CommitRow[]>;
  /** Merges between the two in either direction, newest first. */
  readonly readMerges: (a: string, b: string, limit: number) => Flow<MergeRow[]>;
  readonly findInvocation: (hash: string) => Flow<InvocationRow | undefined>;
};

/** Everything that an accepted write leaves behind. */
export type AcceptedWrites = {
  readonly commit: CommitRow;
  readonly verdict: VerdictRow;
  readonly revisions: readonly RevisionRow[];
  readonly heads: readonly HeadRow[];
  readonly snapshots: readonly SnapshotRow[];
  /** What each entity became: the same as the revisions, applied. */
  readonly changes: readonly EntityChange[];
  readonly invocations: readonly InvocationRow[];
  readonly merge: (MergeRow & { readonly targetBranch: string }) | undefined;
  readonly createdBranch: Branch | undefined;
  readonly deletedBranch: string | undefined;
};

export type PresentAsk = { readonly entityId: string; readonly branch: Branch };

/**
 * The space as it is at its last seq, under the lock. One answer for each ask, in their order. What is read from the store is
 * counted as work.
 */
export type PresentReads = {
  /** Those of the names that exist, in any order. */
  readonly branches: (names: readonly string[]) => Flow<Branch[]>;
  /** Undefined for an entity that was never written. */
  readonly states: (
    asks: readonly PresentAsk[],
    lastSeq: number,
    work: Work,
  ) => Flow<readonly (EntityState | undefined)[]>;
  /** With afterSeq < seq ≤ upTo. */
  readonly laterWrites: (asks: readonly WriteAsk[], work: Work) => Flow<readonly LaterWrites[]>;
  /** What the commit of that seq did to the entity, operation by operation. No ask comes twice. */
  readonly layers: (branch: string, asks: readonly LayerAsk[], work: Work) => Flow<readonly (readonly Footprint[])[]>;
};

/**
 * A transaction on one space, under the space's lock from `lockSpace` on: no other transaction of this space commits
 * between that and this one's end, and what is read after it sees all that committed before.
 */
export type SpaceTransaction = SpaceView & {
  /** Not before `lockSpace` has answered. */
  readonly present: PresentReads;
  /** Called with the work that a body makes, so that bodies that come after too much of it wait for the next transaction. */
  readonly worked: (units: number) => void;
  /** First of all: waits for the lock. Undefined where there is no such space. */
  readonly lockSpace: () => Flow<SpaceRow | undefined>;
  /** Second: the session's row stays as it is read here until the transaction ends. */
  readonly lockSession: (sessionId: string) => Flow<SessionRow | undefined>;
  readonly isLiveMember: (pubkey: string) => Flow<boolean>;
  readonly findOpen: (memberPubkey: string, openHash: Uint8Array) => Flow<OpenRow | undefined>;
  readonly insertOpen: (open: OpenRow) => Flow<void>;
  /** Inserts the session, or moves it to this epoch and token. */
  readonly putSession: (session: SessionRow) => Flow<void>;
  /** Writes all of it, raises the space's seq to the commit's, and the session's last localSeq to the verdict's. */
  readonly writeAccepted: (writes: AcceptedWrites) => Flow<void>;
  /** Writes the verdict and raises the session's last localSeq to its own; nothing else. */
  readonly writeRejected: (verdict: VerdictRow) => Flow<void>;
  /** `undoToMark` takes back what was written after it. */
  readonly mark: () => Flow<void>;
  readonly undoToMark: () => Flow<void>;
  /** Last of all, since it waits for the mesh's lock, and nothing waits after that. */
  readonly acceptSends: (sends: readonly SendToAccept[]) => Flow<SendsOutcome>;
};

/** What a body is about to do. */
export type TransactionHints = {
  /** It will ask for this session and membership, so that a store can ask for many at once. */
  readonly writer?: { readonly sessionId: string; readonly memberPubkey: string };
  /** It must not share its transaction. */
  readonly alone?: boolean;
  /** What it will most likely ask for, so that a store can ask for all of it, and for many bodies, at once. */
  readonly prefetch?: () => PrefetchHints;
};

/** Reads of the present. */
export type PrefetchHints = {
  readonly branches: readonly string[];
  /** Writes of the entity above that seq. */
  readonly writes: readonly { readonly branch: string; readonly entityId: string; readonly afterSeq: number }[];
  readonly documents: readonly { readonly branch: string; readonly entityId: string }[];
};

export type SessionSweepStep = {
  readonly removed: number;
  /** There may be others behind `next`. */
  readonly more: boolean;
  readonly next: SessionCursor | undefined;
};

export type SpacesStore = {
  readonly read: <T>(space: SpaceRef, body: (view: SpaceView) => Flow<T>) => Promise<T>;
  /**
   * All or nothing, durable when this resolves. The body may run several times and may share its transaction with
   * others of the same space, before or after it: it decides before it writes, and returns its refusals.
   */
  readonly transact: <T>(
    space: SpaceRef,
    body: (tx: SpaceTransaction) => Flow<T>,
    hints?: TransactionHints,
  ) => Promise<T>;
  /** With its default branch. */
  readonly createSpace: (
    space: SpaceRef,
    settings: SpaceSettings,
    nowMs: number,
  ) => Promise<"created" | "exists" | "different">;
  /** False where there is no such space. */
  readonly setSignedWrites: (space: SpaceRef, signedWrites: SignedWrites) => Promise<boolean>;
  readonly listSpaces: (meshId: string, after: string, limit: number) => Promise<SpaceRow[]>;
  /** How many spaces, or sessions of all its spaces, the mesh has; counts no further than `upTo`. */
  readonly count: (meshId: string, what: "spaces" | "sessions", upTo: number) => Promise<number>;
  /**
   * Looks at a bounded number of sessions behind `after`, and forgets those that were not used since; their verdicts and
   * commits stay. Short enough not to hold up commits and accepts.
   */
  readonly sweepSessions: (unusedSinceMs: number, after: SessionCursor | undefined) => Promise<SessionSweepStep>;
  /** Deletes a space's snapshots, which loses nothing but time. */
  readonly dropSnapshots: (space: SpaceRef) => Promise<void>;
};

/** How a commit's sends reach the message side, which this package does not know. */
export type SendsPort = {
  /**
   * Reads and fingerprints the sends, looks them up and spends their budget. Throws what is an answer and no verdict
   * (malformed, 429, 503). An id that is consumed already passes: the transaction finds it.
   */
  readonly prepare: (
    sender: { readonly meshId: string; readonly pubkey: string },
    sends: readonly AcceptRequest[],
  ) => Promise<readonly SendToAccept[]>;
  /** After commit: wake the recipients. */
  readonly onAccepted: (meshId: string, recipients: readonly string[]) => void;
};

/** Bytes that a commit takes out of its mesh's budget. Call `settle` once, when it is known whether they count. */
export type TakenBytes =
  | { readonly type: "taken"; readonly settle: (isCounted: boolean) => void }
  | { readonly type: "denied"; readonly retryAfterSeconds: number };

export type CommitBudget = {
  /** At once where that can be. Never rejects. */
  readonly take: (meshId: string, bytes: number) => TakenBytes | Promise<TakenBytes>;
};

/** A commit is durable. Announced once, by the broker that made it; a listener that must miss nothing reads the log. */
export type CommitNotice = {
  readonly meshId: string;
  readonly spaceId: string;
  readonly branch: string;
  readonly seq: number;
  readonly sessionId: string;
  readonly localSeq: number;
  readonly entityIds: readonly string[];
};

export type SpacePorts = {
  readonly store: SpacesStore;
  readonly sends: SendsPort;
  /** Without it, commits are not counted. */
  readonly budget?: CommitBudget | undefined;
  /** One for the whole process. */
  readonly turns: SessionTurns;
  readonly nowMs: () => number;
  /** Ids that sort by time. */
  readonly nextId: () => string;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly onCommitted: (notice: CommitNotice) => void;
  /** A session has a new holder: a holder with an older epoch has lost it. */
  readonly onSessionTaken: (space: SpaceRef, sessionId: string, epoch: number) => void;
  /** Calls once, in the next turn of the event loop; `setImmediate` where absent. */
  readonly nextTurn?: (run: () => void) => void;
};
