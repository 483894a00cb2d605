// What an oracle says when something must not be. The name is stable: a failure that is made smaller has to stay the
// same failure, and a regression names the oracle that found it.
export type OracleName =
  /** A send that was answered 2xx is not in the outbox, or not as it was answered. */
  | "acked_send_lost"
  /** One id was answered for two contents, two rows, or twice as new. */
  | "id_answered_twice"
  /** What a 201 or 200 named is not in the broker's history as it said. */
  | "stored_send_lost"
  /** One id, or one message that nobody allowed to be doubled, is in history twice. */
  | "committed_twice"
  /** A row of history appeared below one that was seen, or a reader missed one. */
  | "history_order"
  /** A delivered message is not in its receiver's inbox. */
  | "delivery_lost"
  /** A message is in an inbox twice, or in one that it was not for. */
  | "inbox_wrong"
  /** An outbox row moved in a way that rows do not move, or what never changes has changed. */
  | "row_moved_wrongly"
  /** A row ended as dead for no reason that this world has. */
  | "dead_without_reason"
  /** An acknowledged message of a queue came back, or two held one at a time. */
  | "queue_wrong"
  /** The daemon's own audit finds an imbalance. */
  | "audit_unbalanced"
  /** The broker's orphan check finds rows that do not fit. */
  | "orphans_found"
  /** After all faults have ended, something did not come to its end. */
  | "not_settled"
  /** A bug: an answer that says internal_error, or an exception that nobody expected. */
  | "internal_error";

export class Violation extends Error {
  override readonly name = "Violation";
  readonly oracle: OracleName;

  constructor(oracle: OracleName, message: string) {
    super(`${oracle}: ${message}`);
    this.oracle = oracle;
  }
}
