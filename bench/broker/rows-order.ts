// What the processes that write an accept's rows in a bare loop are asked for, and what they answer.
import type { IdOrder } from "../load/client-ids.ts";
import type { LatencyFigures } from "../load/latencies.ts";
import type { BenchMesh } from "./bench-meshes.ts";

export type RowsMesh = { readonly id: string; readonly sender: string; readonly subscribers: readonly string[] };

export type RowsOrder = {
  /** The limiter alone, where it is not in the store: as many ids as calls carry, without any row. */
  readonly what?: "rows" | "limiter";
  readonly meshes: readonly RowsMesh[];
  readonly outstanding: number;
  readonly durationMs: number;
  readonly ids: IdOrder;
};

/** Latencies are those of whole transactions. */
export type RowsResult = LatencyFigures & { readonly answered: number; readonly perSecond: number };

export function rowsMesh({ id, keys, subscribers }: BenchMesh): RowsMesh {
  return { id, sender: keys.ed25519.public_key, subscribers };
}
