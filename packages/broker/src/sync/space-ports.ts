// What the space services get from this broker: the store, the message side for sends that commits carry, and who hears
// of what was committed.
import { randomBytes } from "node:crypto";
import type { RateLimit } from "@claudemesh/messages/rate-limit";
import { ByteBudget } from "@claudemesh/messages/services/byte-budget";
import { prepareSends } from "@claudemesh/messages/services/prepare-sends";
import type { SpacePorts } from "@claudemesh/spaces/ports";
import { SessionTurns } from "@claudemesh/spaces/services/session-turns";
import { type BrokerConfig, dedupeRetentionMs } from "../config.ts";
import type { Backend } from "../stores/backend.ts";
import type { ConnectionRegistry } from "../transport/connection-registry.ts";
import type { SpaceWatchers } from "./space-watchers.ts";

type Surroundings = {
  readonly config: BrokerConfig;
  readonly connections: ConnectionRegistry;
  readonly watchers: SpaceWatchers;
  readonly takesUnsealed: (meshId: string) => Promise<boolean>;
  readonly nowMs: () => number;
  readonly nextId: () => string;
  /** What the mesh's owner has chosen for its commits' bytes; undefined: the broker's own limit. */
  readonly commitRateOf?: (meshId: string) => RateLimit | undefined;
  /** The ledger of bytes could not be asked. */
  readonly onLedgerFailure: (error: unknown) => void;
  /** Node's own unless given, both. */
  readonly randomBytes?: (length: number) => Uint8Array;
  readonly nextTurn?: (run: () => void) => void;
};

type SpaceBackend = Pick<Backend, "spaces" | "messages" | "sendLimits" | "byteLedger">;

export function createSpacePorts(backend: SpaceBackend, surroundings: Surroundings): SpacePorts {
  const { config, connections, watchers, takesUnsealed, nowMs, nextId, nextTurn } = surroundings;
  const sending = {
    ...backend.sendLimits,
    store: backend.messages.accepts,
    takesUnsealed,
    nowMs,
    nextId,
    inlineBytes: config.inlineBytes,
    dedupeRetentionMs: dedupeRetentionMs(config),
  };
  return {
    store: backend.spaces,
    sends: {
      prepare: (sender, sends) => prepareSends(sending, sender, sends),
      onAccepted: (meshId, recipients) => connections.wake(meshId, recipients),
    },
    budget: new ByteBudget({
      ledger: backend.byteLedger,
      rate: config.commitRateLimit,
      rateOf: surroundings.commitRateOf,
      nowMs,
      onFailure: surroundings.onLedgerFailure,
    }),
    turns: new SessionTurns(),
    nowMs,
    nextId,
    randomBytes: surroundings.randomBytes ?? ((length) => randomBytes(length)),
    onCommitted: (notice) => watchers.committed(notice),
    onSessionTaken: (space, sessionId, epoch) => watchers.taken(space, sessionId, epoch),
    ...(nextTurn === undefined ? {} : { nextTurn }),
  };
}
