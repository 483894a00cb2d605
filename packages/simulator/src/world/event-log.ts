// Everything that happens in a run, line by line, as one hash: two runs are the same run when their hashes are equal.
// The last lines are kept to be shown with a failure.
import { createHash } from "node:crypto";

export class EventLog {
  readonly #hash = createHash("sha256");
  readonly #kept: string[] = [];
  readonly #keep: number;
  lines = 0;

  constructor(keep = 400) {
    this.#keep = keep;
  }

  add(atMs: number, what: string): void {
    const line = `${atMs.toFixed(3)} ${what}`;
    this.#hash.update(line).update("\n");
    this.lines++;
    this.#kept.push(line);
    if (this.#kept.length > 2 * this.#keep) this.#kept.splice(0, this.#keep);
  }

  last(): string[] {
    return this.#kept.slice(-this.#keep);
  }

  digest(): string {
    return this.#hash.copy().digest("hex");
  }
}
