// A witness hears all answers that callers of a `once` key get, and objects where two of them cannot both be true
// (REG-9, REG-11): an epoch has one claim, a result never changes, and only a not_done lets another run.
import type { OnceEpoch } from "@claudemesh/protocol/registrar/once-state";

/** What became of a call: the decision's word, and the epoch that it names, if any. */
export type OnceWord = { readonly type: string; readonly epoch?: OnceEpoch };

export class OnceWitness {
  readonly permitted = new Map<number, string>();
  readonly notDone = new Set<number>();
  result: string | undefined;

  hear(word: OnceWord): void {
    const { type, epoch } = word;
    if (epoch === undefined) return;
    if (type === "held") this.#permit(epoch);
    const { settlement } = epoch;
    if (settlement === undefined) return;
    if (settlement.how === "resolved_not_done") {
      this.notDone.add(epoch.epoch);
      return;
    }
    object(this.result !== undefined && this.result !== settlement.result, "a result changed");
    this.result = settlement.result;
    object(type === "held", "a caller may run what is done");
  }

  /** Every permission but the last was taken back by an explicit word. */
  check(): void {
    const epochs = [...this.permitted.keys()].toSorted((left, right) => left - right);
    object(
      epochs.some((epoch, index) => epoch !== index + 1),
      `epochs ${epochs.join(", ")} have a gap`,
    );
    const open = epochs.slice(0, -1).find((epoch) => !this.notDone.has(epoch));
    object(open !== undefined, `epoch ${open} was followed by another and never said to be not done`);
  }

  get newest(): number {
    return Math.max(0, ...this.permitted.keys());
  }

  #permit({ epoch, claimId, holder }: OnceEpoch): void {
    const who = `${claimId} of ${holder}`;
    const before = this.permitted.get(epoch) ?? who;
    object(before !== who, `epoch ${epoch} went to ${before} and to ${who}`);
    this.permitted.set(epoch, who);
  }
}

function object(isWrong: boolean, message: string): void {
  if (isWrong) throw new Error(message);
}
