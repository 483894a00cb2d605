// The rows of a space as the stores return them. Documents, operations and footprints are the texts that the
// services wrote: a store keeps them and does not read them.
import type { Segment } from "../core/branch-lineage.ts";

export type { Branch, Segment } from "../core/branch-lineage.ts";

export type SpaceRef = { readonly meshId: string; readonly spaceId: string };

/** A session, as a cursor over all sessions of a store. */
export type SessionCursor = SpaceRef & { readonly sessionId: string };

export type SignedWrites = "optional" | "required";

export type SpaceSettings = {
  /** Left out: optional in a new space, and whatever it is in one that exists. */
  readonly signedWrites?: SignedWrites | undefined;
  readonly createdBy: string;
};

export type SpaceRow = {
  readonly spaceId: string;
  readonly signedWrites: SignedWrites;
  readonly lastSeq: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
};

export type SessionRow = {
  readonly sessionId: string;
  readonly memberPubkey: string;
  /** Counts the opens: only the token of this one is good. */
  readonly epoch: number;
  readonly tokenHash: Uint8Array;
  readonly lastLocalSeq: number;
  readonly usedAtMs: number;
};

/** What an openId was answered with. */
export type OpenRow = {
  readonly memberPubkey: string;
  readonly openHash: Uint8Array;
  readonly sessionId: string;
  readonly epoch: number;
  readonly salt: Uint8Array;
  readonly resumed: boolean;
};

export type VerdictRow = {
  readonly sessionId: string;
  readonly localSeq: number;
  readonly memberPubkey: string;
  readonly fingerprint: Uint8Array;
  readonly branch: string;
  /** Undefined exactly for a rejection. */
  readonly seq: number | undefined;
  readonly result: string;
  readonly decidedAtMs: number;
};

export type CommitRow = {
  readonly seq: number;
  readonly branch: string;
  readonly sessionId: string;
  readonly localSeq: number;
  readonly memberPubkey: string;
  readonly original: string;
  readonly resolution: string;
  readonly invocationRef: string | undefined;
  readonly authorizationRef: string | undefined;
  readonly committedAtMs: number;
};

export type RevisionRow = {
  readonly branch: string;
  readonly entityId: string;
  readonly seq: number;
  readonly opIndex: number;
  readonly op: "set" | "patch" | "delete";
  /** Undefined exactly for a delete. */
  readonly body: string | undefined;
  readonly footprint: string;
};

export type HeadRow = {
  readonly branch: string;
  readonly entityId: string;
  readonly seq: number;
  readonly deleted: boolean;
};

export type SnapshotRow = {
  readonly branch: string;
  readonly entityId: string;
  readonly seq: number;
  readonly document: string;
};

export type MergeRow = { readonly seq: number; readonly sourceBranch: string; readonly sourceSeq: number };

export type InvocationRow = { readonly hash: string; readonly content: string };

/** An entity on one branch, as far as a seq. */
export type TailAsk = Segment & { readonly entityId: string };

export type Tail = {
  readonly snapshot: { readonly seq: number; readonly document: string } | undefined;
  /**
   * Newest first, those after the snapshot, up to the first that is no patch; as many as were asked for, so that there may
   * be more.
   */
  readonly revisions: readonly Omit<RevisionRow, "branch" | "entityId" | "footprint">[];
};

export type WriteAsk = TailAsk & { readonly afterSeq: number };
export type Write = { readonly seq: number; readonly opIndex: number; readonly footprint: string };

/** The commits right after a seq, or right before one. */
export type LogCursor = { readonly after: number } | { readonly before: number };

/** No more rows than these, and none after so many bytes of the text that makes them large. */
export type RowBound = { readonly rows: number; readonly bytes: number };
/** `cut`: the bound was reached, so that there may be others, older than these. */
export type FoundWrites = { readonly writes: readonly Write[]; readonly cut: boolean };

export type LayerAsk = { readonly entityId: string; readonly seq: number };

export type EntityIdQuery = {
  /** The heads of these are looked at. */
  readonly branches: readonly string[];
  /** From here on, in the order of bytes. */
  readonly from: string;
  readonly fromIsTaken: boolean;
  /** Up to here, without this one; to the end where it is left out. */
  readonly before: string | undefined;
  /** Only entities that one of the branches wrote after this seq. */
  readonly afterSeq: number;
  readonly limit: number;
};
