// What the rules of the orphan check are made of: what differs between the stores, and what many of them ask.
import { exists, lacks, type RowDialect, type RowRule, rule } from "@claudemesh/storage/row-rules";

export type Dialect = RowDialect & {
  readonly isFalse: (expression: string) => string;
  /** The history row `h` that a dedupe row `r` speaks of. */
  readonly historyOfDedupe: string;
  /** Rows `j` with one `value` for each member that a message `r` mentions. */
  readonly mentionsOfMessage: string;
  /** The moment of the check, and so many days before it. */
  readonly now: string;
  readonly daysAgo: (days: number) => string;
  readonly daysBefore: (column: string, days: number) => string;
};

export type OrphanCheck = RowRule<Dialect>;

export const check = rule<Dialect>;

export const historyKey = { history_id: "integer" } as const;

/**
 * How far clocks may be apart, or one may have been put back: this is as far as the daemons' own margin goes. What is no
 * further apart than that is no broken rule.
 */
export const clockMarginDays = 1;

export const lacksMember = (d: Dialect, pubkey: string) => lacks(d, "member", "m", `m.pubkey = ${pubkey}`);

export const hasMessage = (d: Dialect) =>
  `(${exists(d, "topic_message", "t", "t.id = r.broker_message_id")}
    OR ${exists(d, "message_queue", "q", "q.id = r.broker_message_id")})`;

export const hasId = (d: Dialect, brokerMessageId = "r.broker_message_id") =>
  exists(
    d,
    "client_message_dedupe",
    "c",
    `c.client_message_id = r.client_message_id AND c.broker_message_id = ${brokerMessageId}`,
  );
