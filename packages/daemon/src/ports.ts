// What the daemon's services need from outside, each with its guarantee. The stores on SQLite, the link, the clock and
// the log implement these; tests use scripted ones instead.
import type { LinkRoute } from "@claudemesh/client/internal/broker-route";
import type { Link, LinkStatus } from "@claudemesh/client/internal/link-contract";
import type { NegotiatedFeatures } from "@claudemesh/protocol/features";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { InboxAuditRow, OutboxSnapshot, PrunedRow } from "./core/audit.ts";
import type { InboxRecord, ReceivedMessage } from "./core/inbox-message.ts";
import type { InboxEntry } from "./core/message-facts.ts";
import type {
  ClaimedRow,
  DismissOrder,
  FenceTarget,
  NewOutboxRow,
  OutboxRecord,
  StoredSend,
} from "./core/outbox-row.ts";
import type { PeerPin } from "./core/peer-pin.ts";
import type { HoldBackOutcome, RequeueOrder, RequeueOutcome, RequeueTarget, StoredContent } from "./core/requeue.ts";
import type { Acceptance, TryEnd } from "./core/try-end.ts";

/** A moment that only moves forward while the process lives, whatever happens to the wall clock. */
export type Clock = {
  /** Milliseconds since the epoch: the wall clock at start plus what has passed since. */
  readonly nowMs: () => number;
  /** Calls once, after at least that long; never sooner than the next turn of the event loop. */
  readonly setTimer: (delayMs: number, callback: () => void) => Timer;
};
export type Timer = { readonly cancel: () => void };

/** What no input decides: chance, and when the event loop comes round. */
export type Chance = {
  /** In [0, 1). */
  readonly random: () => number;
  readonly randomBytes: (length: number) => Uint8Array;
  /** Calls once, after everything that is ready now. */
  readonly nextTurn: (run: () => void) => void;
};

export type LogFields = Readonly<Record<string, unknown>>;
/** Lines never hold bodies, tokens or keys' secrets: callers pass ids, codes and counts. */
export type Log = {
  readonly debug: (fields: LogFields, message: string) => void;
  readonly info: (fields: LogFields, message: string) => void;
  readonly warn: (fields: LogFields, message: string) => void;
  readonly error: (fields: LogFields, message: string) => void;
};

/** The broker, as services see it: the link of the moment. */
export type BrokerLink = Pick<Link, "request"> & {
  /** The brokers that the link is connected to and could connect to. Undefined where it knows one address alone. */
  readonly route?: () => LinkRoute | undefined;
  /** Tries again now, where it waits for its next try. */
  readonly reconnect?: () => void;
  readonly status: () => LinkStatus;
  /** True as soon as a hello has succeeded; false when none has within the time. */
  readonly whenOnline: (timeoutMs: number) => Promise<boolean>;
  /** Says hello again after a backoff: the broker may accept a member that it refused before. */
  readonly renew: () => void;
};

export type DueQuery = {
  readonly nowMs: number;
  /** Rows enqueued at or before this are past their age and not tried. */
  readonly expiredAtOrBefore: number;
  readonly rows: number;
  /** Sum of payloads; the first row is taken whatever its size. */
  readonly bytes: number;
};

/** What a new row was stored as. `known`: its id stands for an earlier send, and nothing changed. */
export type Inserted =
  | { readonly type: "pending" }
  | { readonly type: "inflight" }
  | { readonly type: "known"; readonly send: StoredSend };

/** `more`: due rows were left behind because the query's bounds were reached. */
export type Claim = { readonly rows: readonly ClaimedRow[]; readonly more: boolean };

export type PageQuery = { readonly after: string | undefined; readonly limit: number };
export type Page<T> = { readonly items: readonly T[]; readonly nextCursor: string | undefined };

/** What stands right before a row; without one, the end of the list. The order within the page stays. */
export type PageBefore = { readonly before: string | undefined; readonly limit: number };
/** `older`: how many stand before the page, counted up to a limit. */
export type PageOfNewest<T> = Page<T> & { readonly prevCursor: string | undefined; readonly older: number };

export type OutboxCounts = {
  readonly pending: number;
  readonly inflight: number;
  /** Those that ask for attention. */
  readonly dead: number;
  /** Dead, and let go by the operator. */
  readonly dismissed: number;
};

/**
 * The outbox. Everything that returns a promise is one transaction that is durable when it resolves, each transition a
 * compare-and-set; what resolves to false found the row in another state and changed nothing.
 */
export type OutboxStore = {
  /** What an id stands for, in committed rows and tombstones. One indexed read each, no write. */
  readonly find: (clientMessageId: string) => StoredSend | undefined;
  /** Stores a new row. One that is to be inflight is pending all the same where a row that is due stands before it. */
  readonly insert: (row: NewOutboxRow, as: "pending" | "inflight") => Promise<Inserted>;
  /** Makes due pending rows inflight, in the order in which they became due, and returns them in it. */
  readonly claimDue: (query: DueQuery) => Promise<Claim>;
  /** When the next pending row after this moment becomes due. */
  readonly nextDueAt: (afterMs: number) => number | undefined;
  /** Ends the try that began when the row had this many attempts. */
  readonly endTry: (id: string, attempts: number, end: TryEnd, nowMs: number) => Promise<boolean>;
  /** The row was committed after all: pending, inflight or dead becomes done. */
  readonly commitLate: (id: string, acceptance: Acceptance, nowMs: number) => Promise<boolean>;
  /** A try that was given up as unanswered has been refused after all. */
  readonly settleLateRefusal: (id: string) => Promise<boolean>;
  /** After the end of a process: every inflight row becomes pending, with one more try whose fate is unknown. */
  readonly resumeInflight: (nowMs: number) => Promise<number>;
  /** Due times that lie further ahead than this are a leftover of another clock and are brought forward. */
  readonly boundDueTimes: (latestMs: number) => Promise<number>;
  /** Over pending and inflight rows. */
  readonly oldestOpenEnqueuedAt: () => number | undefined;
  /** Pending rows enqueued at or before the moment, oldest first. */
  readonly expired: (atOrBefore: number, limit: number) => readonly FenceTarget[];
  readonly expireUnsentOrRefused: (ids: readonly string[], lastError: string) => Promise<number>;
  /** Pending → dead while the broker cannot be asked; the fate stays unknown. */
  readonly expireUnknown: (id: string, attempts: number, lastError: string) => Promise<boolean>;
  /** Pending or dead rows of unknown fate, now known never to have committed: dead and fenced. */
  readonly buryFenced: (id: string, attempts: number, lastError: string) => Promise<boolean>;
  /** Dead rows of unknown fate enqueued after the moment. */
  readonly deadOfUnknownFate: (enqueuedAfter: number, after: string, limit: number) => readonly FenceTarget[];
  /** Replaces done rows, settled before the moment, by tombstones. Returns how many. */
  readonly prune: (deliveredBefore: number, nowMs: number, limit: number) => Promise<number>;
  readonly list: (status: OutboxStatus | undefined, page: PageQuery) => Page<OutboxRecord>;
  readonly listBefore: (status: OutboxStatus | undefined, page: PageBefore) => PageOfNewest<OutboxRecord>;
  /** By outbox id, else by client message id, with the rows it superseded and those that superseded it, oldest first. */
  readonly inspect: (id: string) => { readonly row: OutboxRecord; readonly chain: readonly OutboxRecord[] } | undefined;
  readonly counts: () => OutboxCounts;
  /** Bytes of the database that hold something. */
  readonly usedBytes: () => number;
};

/** Requeues, on the same database. Reads see rows and tombstones. */
export type RequeueStore = {
  /** By outbox id, else by client message id. */
  readonly find: (id: string) => RequeueTarget | undefined;
  readonly content: (id: string) => StoredContent | undefined;
  readonly isConsumed: (clientMessageId: string) => boolean;
  /** Retires the old row and inserts the new one, both durably, or changes nothing. */
  readonly requeue: (order: RequeueOrder) => Promise<RequeueOutcome>;
  /** Lets no try of a pending row begin before the moment. */
  readonly holdBack: (id: string, untilMs: number) => Promise<HoldBackOutcome>;
  /** A pending row is due at this moment at the latest. */
  readonly bringForward: (id: string, dueAtMs: number) => Promise<void>;
};

export type DismissStore = {
  /**
   * Marks a dead row, durably; a mark that is there stays. A pending row is made dead and marked, in one transaction, where this
   * member was removed from the mesh. False: nothing changed.
   */
  readonly dismiss: (order: DismissOrder) => Promise<boolean>;
};

export type InboxFilter = {
  readonly since: number | undefined;
  readonly topic: string | undefined;
  /** Messages of any sender, or those of these public keys; none where the list is empty. */
  readonly senders: "any" | readonly string[];
  /** True: only what is not marked as read. */
  readonly unread?: boolean;
};

export type InboxArrival = ReceivedMessage & { readonly senderName: string | undefined; readonly restored: boolean };

/** What arrived after an id, in the order of arrival. `upTo` is where to go on, also past rows that are no news. */
export type InboxNews = { readonly items: readonly InboxRecord[]; readonly upTo: string; readonly more: boolean };

/**
 * `new`: a new row, or the first live delivery of one that was restored. `reused`: a new row whose client id stood for
 * another message, which is kept beside it. `known`: the message is here, or retention has removed it; nothing changed.
 */
export type InboxInsert = "new" | "reused" | "known";

/** The inbox. A row is durable when the promise resolves; only then may its delivery be acked. */
export type InboxStore = {
  /** A message is known by the broker's id of it. */
  readonly insert: (arrival: InboxArrival, receivedAt: number) => Promise<InboxInsert>;
  readonly list: (filter: InboxFilter, page: PageQuery) => Page<InboxRecord>;
  readonly listBefore: (filter: InboxFilter, page: PageBefore) => PageOfNewest<InboxRecord>;
  /** Messages whose text has all the words. No text is an error. */
  readonly search: (text: string, page: PageQuery) => Page<InboxRecord>;
  /**
   * One bounded step through live arrivals. Ids grow in the order in which rows become visible, so that no row ever
   * appears before one that was read here.
   */
  readonly news: (after: string) => InboxNews;
  /** The largest id ever given; undefined where nothing ever arrived. */
  readonly lastId: () => string | undefined;
  readonly unreadable: () => number;
  /** Replaces the oldest messages received before the moment by tombstones. Returns how many. */
  readonly removeReceivedBefore: (moment: number, nowMs: number, limit: number) => Promise<number>;
  /** The history id that the rebuild has reached. Undefined where no rebuild is due. */
  readonly rebuildAfter: () => number | undefined;
  readonly setRebuildAfter: (historyId: number | undefined) => Promise<void>;
};

/** Single messages of the inbox, also those that retention has removed. */
export type InboxEntries = {
  /** By inbox id, else by client message id, which is that of its latest message. */
  readonly find: (id: string) => InboxEntry | undefined;
  /** Sets the mark once, durably; a mark that is there stays. Undefined where there is no such message. */
  readonly markRead: (id: string, nowMs: number) => Promise<InboxEntry | undefined>;
};

export type ReaderAsk = {
  readonly reader: string;
  /** The end of an earlier page that reached the reader. */
  readonly acknowledge: string | undefined;
  readonly limit: number;
};

export type ReaderPage = {
  /** Unread, in the order of arrival. */
  readonly items: readonly InboxRecord[];
  /** Items up to this id were offered before. */
  readonly offeredBefore: string;
  readonly position: string;
  /** Unread ones behind the page, and unread ones that are older than the reader, each counted up to a limit. */
  readonly waiting: number;
  readonly older: number;
  readonly startsAt: string;
};

/** Programs that read the inbox, and how far each has come. */
export type InboxReaders = {
  /**
   * What the reader has not acknowledged, from its position on; a new reader begins with the newest page. The position and
   * what is offered are durable when this resolves.
   */
  readonly next: (ask: ReaderAsk, nowMs: number) => Promise<ReaderPage>;
};

/** What an audit reads of both databases; nothing changes. */
export type AuditReading = {
  /** Everything in it is of one moment. */
  readonly outbox: () => OutboxSnapshot;
  /** In the order of ids, after one; only of rows that were enqueued after a moment. */
  readonly tombstonePage: (after: string, enqueuedAfter: number, limit: number) => readonly PrunedRow[];
  /** Another program removed the row or tombstone of this id; it may have been put back since. */
  readonly wasRemoved: (clientMessageId: string) => boolean;
  /** In the order of ids, after one. */
  readonly inboxPage: (after: string, limit: number) => readonly InboxAuditRow[];
  /** True also where retention has removed the message. */
  readonly findReceived: (message: Pick<HistoryItem, "client_message_id" | "broker_message_id">) => boolean;
  readonly inboxTombstones: () => number;
};

/** One bounded step from the newest row towards the oldest; `before` is where the next one begins, where there is more. */
type BrokerIdStep = (
  brokerMessageId: string,
  before: string | undefined,
) => { readonly found: string | undefined; readonly before: string | undefined };

/** Row ids by the broker's id of their message. */
export type BrokerIdSearch = {
  readonly outbox: BrokerIdStep;
  readonly tombstones: BrokerIdStep;
  readonly inbox: BrokerIdStep;
};

export type OutboxChange = { readonly id: string; readonly client_message_id: string; readonly status: OutboxStatus };

/** Reports every change of a row's status once it is committed, in its order, until the returned function is called. */
export type WatchOutbox = (onChange: (change: OutboxChange) => void) => () => void;

export type MemberEntry = { readonly pubkey: string; readonly name: string };

/** The member list on disk. */
export type MembersStore = {
  readonly load: () => readonly MemberEntry[];
  readonly change: (change: {
    readonly put: readonly MemberEntry[];
    readonly remove: readonly string[];
  }) => Promise<void>;
};

/** Pinned keys of names. */
export type PeerPinsStore = {
  readonly load: () => readonly PeerPin[];
  /** In place of what was pinned for the name. */
  readonly put: (pin: PeerPin) => Promise<void>;
};

/** What the broker announced last, kept for the time when it is away. */
export type NegotiatedStore = {
  readonly load: () => NegotiatedFeatures | undefined;
  readonly save: (features: NegotiatedFeatures) => Promise<void>;
};

/** When the broker said first that this member is none any more. */
export type MembershipEnd = { readonly at: number };

export type MembershipStore = {
  readonly load: () => MembershipEnd | undefined;
  readonly save: (ended: MembershipEnd | undefined) => Promise<void>;
};
