// What the space services need from outside, each with its guarantee. SQLite and PostgreSQL stores owe the same.

import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import type { SendsOutcome, SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import type { KnownDraft } from "./core/known-space.ts";
import type { Flow } from "./ports/flow.ts";
import type {
  Branch,
  CommitRow,
  EntityIdQuery,
  FoundWrites,
  HeadRow,
  InvocationRow,
  LayerAsk,
  LogPlace,
  MergeRow,
  OpenRow,
  RevisionRow,
  RowBound,
  SessionPlace,
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
   * Entities that are looked for in one question at most. One where each answer is there at once, so that whatever is large is
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
  /** In the order of seq; the one that is nearest to the place always. */
  readonly readLog: (place: LogPlace, bound: RowBound) => Flow<CommitRow[]>;
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
  readonly invocations: readonly InvocationRow[];
  readonly merge: (MergeRow & { readonly targetBranch: string }) | undefined;
  readonly createdBranch: Branch | undefined;
  readonly deletedBranch: string | undefined;
};

/**
 * A transaction on one space, under the space's lock from `lockSpace` on: no other transaction of this space commits
 * between that and this one's end, and what is read after it sees all that committed before.
 */
export type SpaceTransaction = SpaceView & {
  /**
   * What is known of the space without asking, with what this transaction's commits made of it; to be held against the
   * last seq that `lockSpace` answers before it is believed. Kept when the transaction was committed, else dropped.
   */
  readonly known: KnownDraft;
  /** Hears how much work its bodies make, so that what comes after too much of it waits for the next transaction. */
  readonly worked: (units: number) => void;
  /** First of all: waits for the lock. Undefined: no such space. */
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
  /** Marks the place to which `undoToMark` takes back what was written after it. */
  readonly mark: () => Flow<void>;
  readonly undoToMark: () => Flow<void>;
  /** Last of all, since it waits for the mesh's lock, and nothing waits after that. */
  readonly acceptSends: (sends: readonly SendToAccept[]) => Flow<SendsOutcome>;
};

/** What a body is about to do. */
export type TransactionHints = {
  /** Whose session and membership it will ask for, so that a store can ask for many at once. */
  readonly writer?: { readonly sessionId: string; readonly memberPubkey: string };
  /** It must not share its transaction. */
  readonly alone?: boolean;
  /** What it will most likely ask for, so that a store can ask for all of it, and for many bodies, at once. */
  readonly expects?: () => Expected;
};

/** Of the present. */
export type Expected = {
  readonly branches: readonly string[];
  /** Whose writes above that seq. */
  readonly writes: readonly { readonly branch: string; readonly entityId: string; readonly afterSeq: number }[];
  /** Whose documents. */
  readonly documents: readonly { readonly branch: string; readonly entityId: string }[];
};

export type SessionSweepStep = {
  readonly removed: number;
  /** There may be others behind `next`; undefined: from the beginning on. */
  readonly more: boolean;
  readonly next: SessionPlace | undefined;
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
  /** False: no such space. */
  readonly setSignedWrites: (space: SpaceRef, signedWrites: SignedWrites) => Promise<boolean>;
  readonly listSpaces: (meshId: string, after: string, limit: number) => Promise<SpaceRow[]>;
  /** How many spaces, or sessions of all its spaces, the mesh has; counts no further than `upTo`. */
  readonly count: (meshId: string, what: "spaces" | "sessions", upTo: number) => Promise<number>;
  /**
   * Looks at a bounded number of sessions behind `after`, and forgets those that nobody used since; their verdicts and
   * commits stay. Short enough not to hold up commits and accepts.
   */
  readonly sweepSessions: (unusedSinceMs: number, after: SessionPlace | undefined) => Promise<SessionSweepStep>;
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

/** Bytes that a commit takes out of its mesh's budget. `settle` once, when it is known whether they count. */
export type TakenBytes =
  | { readonly type: "taken"; readonly settle: (isCounted: boolean) => void }
  | { readonly type: "denied"; readonly retryAfterSeconds: number };

export type CommitBudget = {
  /** At once where that can be. Never rejects. */
  readonly take: (meshId: string, bytes: number) => TakenBytes | Promise<TakenBytes>;
};

/** A commit is durable. Told once by whoever made it; a listener that must miss nothing asks for changes since a seq. */
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
  /** Undefined: commits are not counted. */
  readonly budget?: CommitBudget | undefined;
  /** One for the whole process. */
  readonly turns: SessionTurns;
  readonly nowMs: () => number;
  /** Ids that sort by time. */
  readonly nextId: () => string;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly onCommitted: (notice: CommitNotice) => void;
  /** A session changed hands: whoever holds an older epoch of it has lost it. */
  readonly onSessionTaken: (space: SpaceRef, sessionId: string, epoch: number) => void;
  /** Calls once, when the event loop has come round; `setImmediate` where absent. */
  readonly nextTurn?: (run: () => void) => void;
};
