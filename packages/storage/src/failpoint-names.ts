// Every fault point of the product. One list, because a daemon and a broker in one process read the same setting and
// a misspelt name must be refused by both.

export const failpointNames = [
  /** Daemon: around the commit that makes a send durable. */
  "outbox.before_commit",
  "outbox.after_commit",
  /** Daemon: frames are written to the socket and nothing is answered yet. */
  "drain.after_write",
  /** Daemon: received messages are durable and not yet acknowledged. */
  "inbox.after_commit",
  /** Broker: an id was found free and its transaction has not begun. */
  "accept.after_b0",
  /** Broker: around the commit that accepts sends. */
  "accept.before_commit",
  "accept.after_commit",
  /** Broker: a fence is written and not yet committed. */
  "fence.before_commit",
  /** Broker: around the commit that decides commits, branches and sessions of a space. */
  "commit.before_commit",
  "commit.after_commit",
  /** Broker: a step of housekeeping has removed what it may, and is not yet committed. */
  "sweep.before_commit",
  /** Broker: a webhook's receiver has answered and nothing of it is written. */
  "webhook.after_post",
  /** Broker: around the commit that consumes a request's key, its nonce and its effect. */
  "registrar.before_commit",
  "registrar.after_commit",
  /** Broker: around the commit of a claim, renewal, record or resolve of `once`. */
  "once.before_commit",
  "once.after_commit",
] as const;

export type FailpointName = (typeof failpointNames)[number];
