// This machine's mesh in the few calls that a first program needs. The rest of the daemon's API is available as
// `daemon`.
import type { Meta, Priority } from "@claudemesh/protocol/messages/envelope";
import type { SendRequest } from "@claudemesh/protocol/messages/send-request";
import type { InboxItem, InboxQuery, Page, ReadMark, SendBody } from "./daemon-bodies.ts";
import type { DaemonClient } from "./daemon-client.ts";
import { bodyOf, DaemonRefused } from "./daemon-failures.ts";
import type { FollowOptions } from "./inbox-arrivals.ts";
import { type LocalDaemonOptions, openLocalDaemon } from "./local-daemon.ts";
import type { MessageFacts } from "./report-bodies.ts";

export type MessageOptions = {
  /** The identity of the message: the same id with the same content is one message. Without it each call makes a new one. */
  readonly id?: string;
  readonly priority?: Priority;
  readonly meta?: Meta;
  /** How long to ask again while the daemon cannot be reached or answers "later". Default: 10 s. */
  readonly retryForMs?: number;
};

export type InboxOptions = FollowOptions &
  Pick<InboxQuery, "topic" | "from" | "unread"> & {
    /** True: the iteration goes on with messages as they arrive, until `signal` ends it. */
    readonly follow?: boolean;
  };

export type MeshConnection = {
  /**
   * Durable on this host when it resolves. Throws DaemonRefused for a refusal, DaemonUnreachable where no answer came.
   */
  readonly send: (to: string, message: string, options?: MessageOptions) => Promise<SendBody>;
  /** Replies to the sender of a direct message, or to the topic of a topic's message. */
  readonly reply: (item: InboxItem, message: string, options?: MessageOptions) => Promise<SendBody>;
  /** What is in the inbox, oldest first. */
  readonly inbox: (options?: InboxOptions) => AsyncGenerator<InboxItem>;
  /** Marks a message as read, which its sender can see. */
  readonly markRead: (item: InboxItem) => Promise<ReadMark>;
  /** Where a message is, by any of its ids. */
  readonly status: (id: string) => Promise<MessageFacts>;
  readonly daemon: DaemonClient;
  /** Closes idle connections. */
  readonly close: () => void;
};

/** Opens no connection yet: the first call shows whether a daemon runs. */
export function connect(options: LocalDaemonOptions = {}): MeshConnection {
  const daemon = openLocalDaemon(options);
  const send = async (request: SendRequest, { id, priority, meta, retryForMs }: MessageOptions): Promise<SendBody> => {
    const whole: SendRequest = {
      ...request,
      ...(id === undefined ? {} : { client_message_id: id }),
      ...(priority === undefined ? {} : { priority }),
      ...(meta === undefined ? {} : { meta }),
    };
    const [outcome] = await daemon.sendMany([whole], retryForMs === undefined ? {} : { retryForMs });
    if (outcome?.type === "accepted") return outcome.body;
    throw outcome?.type === "refused" ? new DaemonRefused(outcome.status, outcome.body) : outcome?.error;
  };
  return {
    send: (to, message, messageOptions = {}) => send({ to, message }, messageOptions),
    reply: (item, message, messageOptions = {}) => {
      const to = item.topic === null ? `dm:${item.sender_pubkey}` : `#${item.topic}`;
      return send({ to, message, reply_to_id: item.broker_message_id }, messageOptions);
    },
    inbox: ({ follow = false, signal, ...query } = {}) =>
      follow
        ? daemon.followInbox({ ...query, since: 0 }, signal === undefined ? {} : { signal })
        : readInbox(daemon, query),
    markRead: async (item) => bodyOf(await daemon.markRead(item.id)),
    status: async (id) => bodyOf(await daemon.message(id)),
    daemon,
    close: () => daemon.close(),
  };
}

async function* readInbox(daemon: DaemonClient, query: InboxQuery): AsyncGenerator<InboxItem> {
  let cursor: string | null = null;
  do {
    const page: Page<InboxItem> = bodyOf(await daemon.inbox(cursor === null ? query : { ...query, cursor }));
    yield* page.items;
    cursor = page.next_cursor;
  } while (cursor !== null);
}
