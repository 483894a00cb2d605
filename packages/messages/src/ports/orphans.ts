// What looking for rows that do not fit together needs from the store of messages, beside its rules.
import type { RuleStore } from "@claudemesh/storage/row-rules";

export type OrphanStore = RuleStore & {
  /**
   * True for one caller: the mesh was last claimed before `beforeMs`, and now is. So brokers side by side share the
   * meshes of a night.
   */
  readonly claim: (meshId: string, nowMs: number, beforeMs: number) => Promise<boolean>;
};
