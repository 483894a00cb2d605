// Accepts on PostgreSQL: which sends share a transaction, and what happens where two of them have the same id.
//
// Each mesh has its own queue. While one of its transactions is under way, the sends that arrive wait, and share the next one:
// under load a transaction carries many sends, and a send that is alone waits for nothing. A second transaction of the mesh
// would only wait for the mesh's lock. So history has the order in which the sends came.
//
// An id is in one transaction at most. The first send that brings it leads; one with the same id that comes meanwhile is
// answered from the leader's outcome, without asking the database. Where the leader was refused, the other is judged by itself,
// since it may come from another member.
//
// A batch is tried in up to three ways, and each leaves nothing behind for the next:
//
//   free       The look-up before found every id free, and nearly always they still are: plain inserts, the fewest questions.
//   contested  One of the ids was taken since: every id is claimed or answered from its row.
//   alone      The store refused the batch for another reason: each send in a transaction of its own (batcher.ts).
//
// A send is checked for being outdated when its transaction begins, the last moment before its claim leaves this process.
// Why: docs/tuning-log.md#one-transaction-of-a-mesh-at-a-time.
import { Batcher, transactions } from "@claudemesh/storage/batcher";
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import { StorageError } from "@claudemesh/storage/errors";
import type { Postgres } from "@claudemesh/storage/postgres";
import { createPostgresCommit, type PostgresCommit } from "@claudemesh/storage/postgres-commit";
import { answerFromStored } from "../../core/stored-accept.ts";
import type { CommittedAccept, OfferedSend, SendToAccept, StoredAccept } from "../../ports.ts";
import { type AcceptOutcome, pipelineAcceptBatch } from "./accept-in-transaction.ts";
import type { Ids } from "./accept-statements.ts";
import { TopicAudiences } from "./topic-audiences.ts";

const sendsPerTransaction = 256;
/** Bounds bodies and deliveries, because other sends of the mesh wait while they are written. */
const bytesPerTransaction = 4 * 1_048_576;
const bytesPerDelivery = 256;
/** So many deliveries to each of a full transaction's sends are all that it may write. */
const audienceWorthKnowing = bytesPerTransaction / bytesPerDelivery / sendsPerTransaction;
/** How often a send may find its id consumed and then forgotten before it gives up. */
const triesMax = 5;

/** A send between its submission and its outcome. */
type Leader = { readonly send: OfferedSend; readonly outcome: Promise<AcceptOutcome> };

export class AcceptBatches {
  readonly #commit: PostgresCommit;
  /** Hooks are called after the answer to the last statement. Without hooks COMMIT is sent right behind it. */
  readonly #commitWaits: boolean;
  readonly #audiences = new TopicAudiences(audienceWorthKnowing);
  readonly #batches: Batcher<OfferedSend, AcceptOutcome>;
  readonly #leaders = new Map<string, Leader>();

  constructor(postgres: Pick<Postgres, "transaction">, hooks: CommitHooks | undefined) {
    this.#commit = createPostgresCommit(postgres, hooks);
    this.#commitWaits = hooks !== undefined;
    this.#batches = new Batcher<OfferedSend, AcceptOutcome>(
      { ...transactions, maxItems: sendsPerTransaction },
      {
        keyOf: ({ meshId }) => meshId,
        weight: {
          of: (send) => send.envelope.body.length + this.#audiences.expected(send) * bytesPerDelivery,
          max: bytesPerTransaction,
        },
        run: (sends) => this.#run(sends),
      },
    );
  }

  /** Resolves after the COMMIT that decides this send. */
  async accept(send: OfferedSend): Promise<CommittedAccept> {
    const key = `${send.meshId} ${send.clientMessageId}`;
    for (let tries = 0; tries < triesMax; tries += 1) {
      for (;;) {
        const leader = this.#leaders.get(key);
        if (leader === undefined) break;
        const stored = storedBy(leader.send, await leader.outcome);
        if (stored !== undefined) return answerStored(stored, send);
      }
      const outcome = await this.#lead(key, send);
      if (outcome.type !== "forgotten") return answerOutcome(outcome, send);
    }
    throw new StorageError("conflict", "the id was consumed and forgotten again and again");
  }

  #lead(key: string, send: OfferedSend): Promise<AcceptOutcome> {
    const outcome = this.#batches.submit(send);
    this.#leaders.set(key, { send, outcome });
    const end = () => this.#leaders.delete(key);
    outcome.then(end, end);
    return outcome;
  }

  async #run(sends: readonly OfferedSend[]): Promise<readonly AcceptOutcome[]> {
    const timely = sends.filter((send) => !send.isOutdated());
    const outcomes = timely.length === 0 ? [] : await this.#acceptBatch(timely);
    if (timely.length === sends.length) return outcomes;
    return sends.map((send) => outcomes[timely.indexOf(send)] ?? { type: "outdated" });
  }

  async #acceptBatch(sends: readonly OfferedSend[]): Promise<readonly AcceptOutcome[]> {
    try {
      return await this.#transact(sends, "free");
    } catch (error) {
      if (!isTaken(error)) throw error;
      return this.#transact(sends, "contested");
    }
  }

  async #transact(sends: readonly OfferedSend[], ids: Ids): Promise<readonly AcceptOutcome[]> {
    const { meshId } = sends[0] as OfferedSend;
    const { decided } = await this.#commit.submit(async (tx) => {
      const sent = pipelineAcceptBatch(tx, meshId, sends, ids);
      if (this.#commitWaits) await sent.decided;
      return sent;
    }, "accept");
    const outcomes = await decided;
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.type === "accepted") this.#audiences.note(sends[index] as OfferedSend, outcome.recipients.length);
    }
    return outcomes;
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof StorageError && error.constraint === "unique";
}

/** The dedupe row that exists after this outcome; undefined where there is none. */
function storedBy(send: SendToAccept, outcome: AcceptOutcome): StoredAccept | undefined {
  if (outcome.type === "stored") return outcome.stored;
  if (outcome.type !== "accepted") return undefined;
  return {
    brokerMessageId: send.brokerMessageId,
    historyId: outcome.historyId,
    fingerprint: send.fingerprint,
    senderPubkey: send.senderPubkey,
    historyAvailable: true,
    firstSeenAtMs: send.acceptedAtMs,
  };
}

function answerStored(stored: StoredAccept, send: SendToAccept): CommittedAccept {
  const result = answerFromStored(stored, send);
  if (result === undefined) throw new Error("a stored accept has an answer");
  return { result, recipients: [] };
}

export function answerOutcome(
  outcome: Exclude<AcceptOutcome, { type: "forgotten" }>,
  send: SendToAccept,
): CommittedAccept {
  const { brokerMessageId, clientMessageId } = send;
  if (outcome.type === "stored") return answerStored(outcome.stored, send);
  if (outcome.type === "accepted") {
    const { historyId, recipients } = outcome;
    return { result: { type: "accepted", brokerMessageId, clientMessageId, historyId }, recipients };
  }
  if (outcome.type === "outdated") return { result: { type: "outdated" }, recipients: [] };
  if (outcome.refusal === "fenced") return { result: { type: "fenced", clientMessageId }, recipients: [] };
  return { result: { type: "refused", code: outcome.refusal }, recipients: [] };
}
