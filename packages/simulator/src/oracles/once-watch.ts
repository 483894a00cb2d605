// Keys of `once` as the store has them, as callers hear of them, and as the world outside has felt them: an effect
// happens at most once, a result never changes, and no caller runs while another may have run.
import type { OnceEpoch } from "@claudemesh/protocol/registrar/once-state";
import { OnceWitness } from "../../../../tests/support/once-witness.ts";
import type { EdgeAnswer } from "./session-watch.ts";
import { Violation } from "./violation.ts";

/** Where effects happen. It remembers them, and refuses an epoch that was declared over. */
class Outside {
  readonly #performed = new Map<string, number[]>();
  readonly #fenced = new Map<string, number>();

  /** False: this epoch has been declared over. */
  perform(key: string, epoch: number): boolean {
    if (epoch <= (this.#fenced.get(key) ?? 0)) return false;
    this.#performed.set(key, [...this.epochsOf(key), epoch]);
    return true;
  }

  /** Nothing of this epoch happens any more. True: it has not happened yet. */
  fence(key: string, epoch: number): boolean {
    this.#fenced.set(key, Math.max(epoch, this.#fenced.get(key) ?? 0));
    return !this.epochsOf(key).includes(epoch);
  }

  epochsOf(key: string): readonly number[] {
    return this.#performed.get(key) ?? [];
  }

  get keys(): Iterable<string> {
    return this.#performed.keys();
  }
}

export class OnceWatch {
  readonly outside = new Outside();
  readonly #witnesses = new Map<string, OnceWitness>();
  readonly #epochs = new Map<string, readonly OnceEpoch[]>();
  readonly tally = { epochs: 0, done: 0, notDone: 0 };

  get keys(): readonly string[] {
    return [...this.#epochs.keys()];
  }

  newestOf(key: string): OnceEpoch | undefined {
    return this.#epochs.get(key)?.at(-1);
  }

  /** All epochs of a key as they are stored now, the oldest first. */
  noteStored(key: string, epochs: readonly OnceEpoch[]): void {
    const witness = this.#witnesses.get(key) ?? new OnceWitness();
    this.#witnesses.set(key, witness);
    this.#epochs.set(key, epochs);
    try {
      for (const epoch of epochs) {
        if (!witness.permitted.has(epoch.epoch)) {
          this.tally.epochs += 1;
          witness.hear({ type: "held", epoch: { ...epoch, settlement: undefined } });
        }
        witness.hear({ type: "stored", epoch });
      }
      witness.check();
    } catch (error) {
      broken(`${key}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** An answer as it leaves a broker. */
  heard(call: string, key: string, input: { readonly claim_id?: string }, { status, body }: EdgeAnswer): void {
    if (status !== 200 && status !== 201) return;
    const { epoch, result } = body as { readonly epoch?: number; readonly result?: unknown };
    const stored = this.#epochs.get(key)?.find((each) => each.epoch === epoch);
    if (call === "once.claim" && status === 201 && stored?.claimId !== input.claim_id) {
      broken(`${key}: epoch ${epoch} was given to ${input.claim_id} and belongs to ${stored?.claimId ?? "no claim"}`);
    }
    if (call === "once.claim" && status === 200) this.checkResult(key, result);
    const isSettled = call === "once.record" || call === "once.resolve";
    if (isSettled && stored?.settlement === undefined)
      broken(`${key}: epoch ${epoch} was settled, and is not stored so`);
  }

  /** Called when a caller gets the answer that this came of the key. */
  checkResult(key: string, result: unknown): void {
    const stored = this.#epochs.get(key)?.find(({ settlement }) => settlement !== undefined && "result" in settlement);
    const text =
      stored?.settlement !== undefined && "result" in stored.settlement ? stored.settlement.result : undefined;
    if (text !== JSON.stringify(result)) broken(`${key} is ${text}, and a caller got ${JSON.stringify(result)}`);
  }

  /** Between rounds, or at the end: what is settled tells what happened outside. */
  check(): void {
    this.tally.done = 0;
    this.tally.notDone = 0;
    for (const key of this.outside.keys) {
      const { length } = this.outside.epochsOf(key);
      if (length > 1) broken(`the effect of ${key} happened ${length} times`);
    }
    for (const [key, epochs] of this.#epochs) for (const epoch of epochs) this.#checkEpoch(key, epoch);
  }

  #checkEpoch(key: string, { epoch, settlement }: OnceEpoch): void {
    if (settlement === undefined) return;
    const happened = this.outside.epochsOf(key).includes(epoch);
    const saysDone = settlement.how !== "resolved_not_done";
    this.tally[saysDone ? "done" : "notDone"] += 1;
    if (happened === saysDone) return;
    broken(`${key}: epoch ${epoch} is ${settlement.how}, and its effect ${happened ? "happened" : "never happened"}`);
  }
}

function broken(message: string): never {
  throw new Violation("once_broken", message);
}
