// What every handler of one broker process shares. Built once at start; there is no other state between requests
// than the store, the connections and these.
import type { Strangers } from "@claudemesh/http/strangers";
import type { MembersStore } from "@claudemesh/members/ports";
import type { MeshSettingsService } from "@claudemesh/members/services/mesh-settings";
import type { MessagesStore } from "@claudemesh/messages/ports";
import type { OnceStore } from "@claudemesh/registrar/once-ports";
import type { SpacePorts } from "@claudemesh/spaces/ports";
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";
import type { Logger } from "pino";
import type { Housekeeping } from "./background/housekeeping.ts";
import type { BrokerKey } from "./broker-key.ts";
import type { BrokerConfig } from "./config.ts";
import type { BrokerMetrics } from "./metrics.ts";
import type { MeshCaps } from "./operations/mesh-caps.ts";
import type { BrokerRegistrar } from "./registrar/broker-registrar.ts";
import type { Readiness } from "./stores/readiness.ts";
import type { SpaceWatchers } from "./sync/space-watchers.ts";
import type { ConnectionRegistry } from "./transport/connection-registry.ts";

export type BrokerContext = {
  readonly config: BrokerConfig;
  readonly members: MembersStore;
  readonly messages: MessagesStore;
  readonly once: OnceStore;
  readonly registrar: BrokerRegistrar;
  readonly spaces: SpacePorts;
  readonly settings: MeshSettingsService;
  readonly caps: MeshCaps;
  /** Spends a unit of the mesh's budget on something new with this id; rejects with the refusal. */
  readonly admitNew: (meshId: string, id: string) => Promise<void>;
  readonly watchers: SpaceWatchers;
  readonly connections: ConnectionRegistry;
  /** Peers that have not shown who they are. */
  readonly strangers: Pick<Strangers, "know" | "roomOf">;
  /** Whether store and limiter take writes. Never rejects; cheap, since one proof serves a second. */
  readonly checkReady: () => Promise<Readiness>;
  readonly failpoints: Failpoints<FailpointName>;
  readonly metrics: BrokerMetrics;
  readonly housekeeping: Housekeeping;
  readonly log: Logger;
  readonly nowMs: () => number;
  readonly nextId: () => string;
  readonly adminToken: string;
  /** By which members know this broker; goes into invites. */
  readonly key: BrokerKey;
  /** Where clients reach this broker; goes into invites. */
  readonly publicUrl: () => string;
  /** Where clients reach the brokers of this store; empty where none has an address that it may tell. */
  readonly brokerUrls: () => readonly string[];
  /** The certificate that clients are to trust, where no public authority vouches for it; goes into invites. */
  readonly pinnedCertificate: () => string | undefined;
};
