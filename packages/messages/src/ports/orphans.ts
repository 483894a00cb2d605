// What looking for rows that do not fit together needs from a store: one page of one rule of one mesh at a time.
import type { orphanChecks } from "../stores/orphan-checks.ts";

export type OrphanCheckName = keyof typeof orphanChecks;

/** Where the next page begins. */
export type OrphanCursor = readonly (string | number | Uint8Array)[];

export type OrphanPage = {
  readonly rows: number;
  /** The keys of rows that break the rule, as text. */
  readonly found: readonly string[];
  /** Undefined: this was the last page. */
  readonly next: OrphanCursor | undefined;
};

export type OrphanStore = {
  /**
   * Up to `limit` rows, in the order of their keys, each with all that it must fit to on one snapshot: what is written
   * or removed meanwhile by anybody who keeps the rules is never found.
   */
  readonly checkPage: (
    name: OrphanCheckName,
    meshId: string,
    after: OrphanCursor | undefined,
    options: { readonly nowMs: number; readonly limit: number },
  ) => Promise<OrphanPage>;
  /** Tables with rows of a mesh that is not in the directory: `table/mesh id`, some of them. */
  readonly strayMeshes: () => Promise<string[]>;
  /**
   * True for one caller: the mesh was last claimed before `beforeMs`, and now is. So brokers side by side share the
   * meshes of a night.
   */
  readonly claim: (meshId: string, nowMs: number, beforeMs: number) => Promise<boolean>;
};
