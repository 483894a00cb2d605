// Reads that belong together and may be large: how many entities are read at once follows from what the last read cost, and
// others have a turn before the next one.
// Why: docs/decisions/0116.
import { Work } from "@claudemesh/protocol/spaces/work";

export type NextTurn = (run: () => void) => void;

const firstRead = 1;
/** In units of work. */
const cheap = 2_000_000;
const expensive = 10_000_000;

export class ReadPace {
  readonly #most: number;
  readonly #nextTurn: NextTurn;
  #size = firstRead;
  #isFirst = true;

  /** `most`: entities in one read. */
  constructor(most: number, nextTurn: NextTurn = setImmediate) {
    this.#most = most;
    this.#nextTurn = nextTurn;
  }

  /** `read` gets the number of entities that it may read, and counts what that costs in `work`. */
  async next<T>(read: (size: number, work: Work) => Promise<T>): Promise<T> {
    if (!this.#isFirst) await this.#rest();
    this.#isFirst = false;
    const work = new Work();
    const answer = await read(this.#size, work);
    if (work.spent <= cheap) this.#size = Math.min(this.#size * 2, this.#most);
    if (work.spent > expensive) {
      this.#size = 1;
      // The caller needs about as long again for the answer.
      await this.#rest();
    }
    return answer;
  }

  #rest(): Promise<void> {
    return new Promise((resolve) => this.#nextTurn(resolve));
  }
}
