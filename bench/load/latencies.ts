// The times of one segment, kept without a cost that would show in them, and boiled down at the end.
import { quantile } from "../method/statistics.ts";

export type LatencyFigures = { readonly p50Ms: number; readonly p99Ms: number };

export class Latencies {
  #values = new Float64Array(65_536);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(latencyMs: number): void {
    if (this.#count === this.#values.length) {
      const larger = new Float64Array(this.#values.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#count++] = latencyMs;
  }

  figures(): LatencyFigures {
    const sorted = this.#values.slice(0, this.#count).sort();
    return { p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) };
  }
}
