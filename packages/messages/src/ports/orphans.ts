// What looking for rows that do not fit together needs from the store of messages, beside its rules.
import type { RuleStore } from "@claudemesh/storage/row-rules";

/** What a look through one mesh has found. `rules` are the names of those that were broken. */
export type MeshCheck = { readonly endedAtMs: number; readonly found: number; readonly rules: readonly string[] };

export type OrphanStore = RuleStore & {
  /** Keeps what a look has found, until the next one. */
  readonly noteCheck: (meshId: string, check: MeshCheck) => Promise<void>;
  /** Undefined: none has come to its end. */
  readonly lastCheck: (meshId: string) => Promise<MeshCheck | undefined>;
  /**
   * True for one caller: the mesh was last claimed before `beforeMs`, and now is. So brokers side by side share the
   * meshes of a night.
   */
  readonly claim: (meshId: string, nowMs: number, beforeMs: number) => Promise<boolean>;
};
