// What an oracle says when something must not be. The name is stable: a failure that is made smaller has to stay the
// same failure, and a regression names the oracle that found it.
export type OracleName =
  /** A send that was answered 2xx is not in the outbox, or not as it was answered. */
  | "acked_send_lost"
  /** One id was answered for two contents, two rows, or twice as new. */
  | "id_answered_twice"
  /** What a 201 or 200 named is not in the broker's history as it said. */
  | "stored_send_lost"
  /** One id, or one message that was not allowed to be doubled, is in history twice. */
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
  /** A commit was accepted whose reads were not true, or that no serial order explains. */
  | "not_serializable"
  /** A commit was accepted without a message that it carries, or a message without its commit. */
  | "sends_torn"
  /** A transaction heard something else than what became of it, or got two verdicts. */
  | "verdict_wrong"
  /** A caller wrote with a token that another open had made worthless. */
  | "session_stolen"
  /** A replica, its subscribers or the broker show another state than what was accepted makes. */
  | "state_wrong"
  /** A registration, or its undoing, that the registrar's rules do not allow; or an answer that tells of another. */
  | "registered_wrongly"
  /** A refusal of the registrar is in no audit. */
  | "refusal_unaudited"
  /** An effect happened twice, or a key of once was answered in two ways. */
  | "once_broken"
  /** After all faults have ended, something did not come to its end. */
  | "not_settled"
  /** A bug: an answer that says internal_error, or an exception that was not expected. */
  | "internal_error";

export class Violation extends Error {
  override readonly name = "Violation";
  readonly oracle: OracleName;

  constructor(oracle: OracleName, message: string) {
    super(`${oracle}: ${message}`);
    this.oracle = oracle;
  }
}
