// What a broker stands on: its stores, whether they can be reached, and, where brokers stand side by side, what they
// need for that. Two kinds keep this contract; open-backend.ts chooses.
import type { MembersStore } from "@claudemesh/members/ports";
import type { BrokersStore } from "@claudemesh/members/ports/brokers";
import type { MessagesStore } from "@claudemesh/messages/ports";
import type { ByteLedger } from "@claudemesh/messages/ports/byte-ledger";
import type { SpendPorts } from "@claudemesh/messages/services/spend-unit";
import type { OnceStore } from "@claudemesh/registrar/once-ports";
import type { RegistrarStore } from "@claudemesh/registrar/ports";
import type { SpacesStore } from "@claudemesh/spaces/ports";
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import type { Logger } from "pino";
import type { BrokerConfig } from "../config.ts";
import type { Recipient } from "../signals/shared-connections.ts";
import type { TimeSources } from "./store-clock.ts";

export type Backend = {
  readonly members: MembersStore;
  readonly messages: MessagesStore;
  readonly once: OnceStore;
  readonly registrar: RegistrarStore;
  readonly spaces: SpacesStore;
  /** What must hold between rows, beside the rules of messages. */
  readonly otherRules: readonly RuleStore[];
  /** The budget for sends that a commit carries, and for everything else that is new and stays for ever. */
  readonly sendLimits: SpendPorts;
  /** Where the bytes that meshes commit to spaces are added up. */
  readonly byteLedger: ByteLedger;
  /** Where the data is, as it may be shown: without a password. */
  readonly location: string;
  /** An absolute path, which holds for any program on this host. */
  readonly adminTokenFile: string;
  /** Of the store's key, by which members know its brokers: the ed25519 seed in hex. */
  readonly brokerSeed: string;
  /** The brokers on this store; writing a row of it proves that the store takes writes. */
  readonly brokers: BrokersStore;
  /** Rejects with `disk_full` where this broker sees the store's disk and it has no room for another accept. */
  readonly proveRoom: () => Promise<void>;
  /** True once the limiter has taken a write. */
  readonly writeLimiter: () => Promise<boolean>;
  /** The time by which everything in this store is judged. */
  readonly nowMs: () => number;
  /** Since the start of this process. */
  readonly counts: () => BackendCounts;
  /** Undefined where no other broker can be on this store. */
  readonly sideBySide: SideBySide | undefined;
  /** Flushes and lets go. Nothing may be asked of the stores after it is called. */
  readonly close: () => Promise<void>;
};

export type BackendCounts = {
  /** New sends that passed while the limiter was away. */
  readonly limiterPassedUncounted: number;
  /** Units of budget that were spent on sends which the transaction then refused. */
  readonly limiterSpentThenRefused: number;
};

export type SideBySide = {
  readonly redisUrl: string;
  readonly sweepIntervalMs: number;
  readonly findWaiting: (recipients: readonly Recipient[]) => Promise<readonly Recipient[]>;
  /** Members whose membership ended at this time or later. */
  readonly findRevokedSince: (sinceMs: number) => Promise<readonly Recipient[]>;
  /** Known to the brokers of this store alone. */
  readonly signalSecret: Uint8Array;
};

export type BackendSurroundings = {
  readonly config: BrokerConfig;
  readonly failpoints: Failpoints<FailpointName>;
  readonly log: Logger;
  /** Of a store that this broker has alone; the system's own where absent. */
  readonly time?: TimeSources;
};
