// Which sends share a transaction on PostgreSQL: those of one mesh that arrive while two others are on their way. An id
// is in one of them at most; whoever offers it meanwhile is answered from the outcome of the one ahead.
// Why: docs/tuning-log.md#a-meshs-transactions-share-a-connection.
import { StorageError } from "@claudemesh/storage/errors";
import { settleEach } from "@claudemesh/storage/keyed-batches";
import { NaturalBatches } from "@claudemesh/storage/natural-batches";
import type { Postgres, TransactionLine } from "@claudemesh/storage/postgres";
import { answerFromStored } from "../../core/stored-accept.ts";
import type { CommittedAccept, OfferedSend, SendToAccept, StoredAccept } from "../../ports.ts";
import { type AcceptOutcome, sendAccepts } from "./accept-in-transaction.ts";
import type { Ids } from "./accept-statements.ts";
import { TopicAudiences } from "./topic-audiences.ts";

/** Hears of transactions by the kind of work they carry, so that fault points can aim at it. */
export type TransactionProbe = {
  /**
   * Inside the transaction, after the answer to its last statement. A throw rolls back. It may be called again for
   * another try. Where nobody wants to hear of it, an accept's COMMIT does not wait for that answer.
   */
  readonly beforeCommit?: (work: "accept" | "fence" | "sweep") => void | Promise<void>;
  /** Committed, and nobody has been told. A throw reaches the callers, as a crash would. */
  readonly afterCommit: (work: "accept" | "fence") => void | Promise<void>;
};

/** While the server works on one, the callers of the other are answered and come back; a third would only wait behind them. */
const transactionsPerMesh = 2;
const sendsPerTransaction = 256;
/** A transaction costs as much as fifteen sends whatever it holds, here and on the server. */
const sendsWorthOverlapping = 20;
/** Bodies and deliveries: others of the mesh wait while they are written. */
const bytesPerTransaction = 4 * 1_048_576;
const bytesPerDelivery = 256;
/** So many deliveries to each of a full transaction's sends are all that it may write. */
const audienceWorthKnowing = bytesPerTransaction / bytesPerDelivery / sendsPerTransaction;
/** How often a send may find its id consumed and then forgotten before it gives up. */
const triesMax = 5;

const outdated: PromiseSettledResult<AcceptOutcome> = { status: "fulfilled", value: { type: "outdated" } };

type Underway = { readonly send: OfferedSend; readonly outcome: Promise<PromiseSettledResult<AcceptOutcome>> };
type Lane = {
  /** Transactions of a mesh wait for its lock, so that they follow one another: history has the order in which sends came. */
  readonly line: TransactionLine;
  readonly batches: NaturalBatches<OfferedSend, PromiseSettledResult<AcceptOutcome>>;
  /** By client_message_id: who leads, from its first step to its outcome. */
  readonly underway: Map<string, Underway>;
};

export class AcceptBatches {
  readonly #postgres: Postgres;
  readonly #probe: TransactionProbe;
  readonly #audiences = new TopicAudiences(audienceWorthKnowing);
  /** By mesh; only those in which something is under way. */
  readonly #lanes = new Map<string, Lane>();

  constructor(postgres: Postgres, probe: TransactionProbe) {
    this.#postgres = postgres;
    this.#probe = probe;
  }

  /** Resolves after the COMMIT that decides this send. */
  async accept(send: OfferedSend): Promise<CommittedAccept> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      for (;;) {
        const ahead = this.#lanes.get(send.meshId)?.underway.get(send.clientMessageId);
        if (ahead === undefined) break;
        const stored = storedBy(ahead.send, settledValue(await ahead.outcome));
        // Where the one ahead was refused, this one is judged on its own: it may come from another member.
        if (stored !== undefined) return answerStored(stored, send);
      }
      const outcome = settledValue(await this.#lead(send));
      if (outcome.type !== "forgotten") return answerOutcome(outcome, send);
    }
    throw new StorageError("conflict", "the id was consumed and forgotten again and again");
  }

  #lead(send: OfferedSend): Underway["outcome"] {
    const { batches, underway } = this.#lanes.get(send.meshId) ?? this.#openLane(send.meshId);
    // For want of room it is in no batch, and nobody would take it off.
    if (batches.full) return batches.submit(send);
    const outcome = batches.submit(send);
    underway.set(send.clientMessageId, { send, outcome });
    return outcome;
  }

  #openLane(meshId: string): Lane {
    const underway: Lane["underway"] = new Map();
    const line = this.#postgres.line();
    const batches: Lane["batches"] = new NaturalBatches({
      maxConcurrent: transactionsPerMesh,
      maxBatch: sendsPerTransaction,
      weigh: (send) => send.envelope.body.length + this.#audiences.expected(send) * bytesPerDelivery,
      maxWeight: bytesPerTransaction,
      // Where other meshes are busy, the server is: then whole batches cost it least.
      overlapFrom: () => (this.#lanes.size > 1 ? sendsPerTransaction : sendsWorthOverlapping),
      run: async (sends) => {
        try {
          return await this.#runTimely(line, meshId, sends);
        } finally {
          for (const { clientMessageId } of sends) underway.delete(clientMessageId);
          if (underway.size === 0) this.#lanes.delete(meshId);
        }
      },
    });
    const lane = { line, batches, underway };
    this.#lanes.set(meshId, lane);
    return lane;
  }

  /** The last moment before a claim leaves this process. */
  async #runTimely(
    line: TransactionLine,
    meshId: string,
    sends: readonly OfferedSend[],
  ): Promise<readonly PromiseSettledResult<AcceptOutcome>[]> {
    const timely = sends.filter((send) => !send.isOutdated());
    if (timely.length === sends.length) return this.#runBatch(line, meshId, sends);
    const settled = timely.length === 0 ? [] : await this.#runBatch(line, meshId, timely);
    return sends.map((send) => settled[timely.indexOf(send)] ?? outdated);
  }

  #runBatch(
    line: TransactionLine,
    meshId: string,
    sends: readonly OfferedSend[],
  ): Promise<readonly PromiseSettledResult<AcceptOutcome>[]> {
    return settleEach(sends, async (some) => {
      try {
        return await this.#transact(line, meshId, some, "free");
      } catch (error) {
        // An id was taken since its look-up: then nothing of the batch is there, and each is answered by what it finds.
        if (!isTaken(error)) throw error;
        return this.#transact(line, meshId, some, "contested");
      }
    });
  }

  async #transact(
    line: TransactionLine,
    meshId: string,
    sends: readonly OfferedSend[],
    ids: Ids,
  ): Promise<AcceptOutcome[]> {
    const { beforeCommit } = this.#probe;
    const { decided } = await line.transaction(async (tx) => {
      const sent = sendAccepts(tx, meshId, sends, ids);
      if (beforeCommit !== undefined) {
        await sent.decided;
        await beforeCommit("accept");
      }
      return sent;
    });
    const outcomes = await decided;
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.type === "accepted") this.#audiences.note(sends[index] as OfferedSend, outcome.recipients.length);
    }
    await this.#probe.afterCommit("accept");
    return outcomes;
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof StorageError && error.constraint === "unique";
}

function settledValue<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === "rejected") throw settled.reason;
  return settled.value;
}

/** The dedupe row that stands after this outcome; undefined: none. */
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
