// What looking for rows that do not fit together needs from the store of messages, beside its rules.
import type { RuleStore } from "@claudemesh/storage/row-rules";

/** What a check of one mesh has found. `rules` are the names of the rules that were broken. */
export type MeshCheck = { readonly endedAtMs: number; readonly found: number; readonly rules: readonly string[] };

export type OrphanStore = RuleStore & {
  /** Keeps what a check has found, until the next one. */
  readonly noteCheck: (meshId: string, check: MeshCheck) => Promise<void>;
  /** Undefined where no check has come to its end. */
  readonly lastCheck: (meshId: string) => Promise<MeshCheck | undefined>;
  /**
   * Claims the mesh for a check, and is true for one caller, where the last claim was before `beforeMs`. So brokers side by
   * side share the meshes of a night.
   */
  readonly claim: (meshId: string, nowMs: number, beforeMs: number) => Promise<boolean>;
};
