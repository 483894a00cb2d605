// What the doctor knows when it judges: plain facts of one home and one mesh, gathered before any of them is judged.
import type { Finding, FindingCode } from "@claudemesh/client/daemon";
import type { BrokerSaid } from "@claudemesh/client/internal/findings";
import type { LastRun } from "@claudemesh/client/internal/last-run";
import type { FolderFindings } from "@claudemesh/daemon/offline";

export type FileFinding = {
  readonly path: string;
  readonly kind: "file" | "folder" | "socket" | "link" | "other";
  readonly expectedKind: "file" | "folder" | "socket";
  /** The permission bits. */
  readonly mode: number;
  readonly isOurs: boolean;
};

export type HomeFindings = {
  readonly commandVersion: string;
  readonly nodeVersion: string;
  readonly failpointsInShell: string | undefined;
  readonly home: string;
  /** Undefined where there is no home yet. */
  readonly homeFolder: FileFinding | undefined;
  readonly freeBytes: number | undefined;
};

export type DaemonFindings =
  | { readonly type: "answers"; readonly version: string; readonly pid: number | undefined; readonly health: unknown }
  /** Something took the question and did not answer in time. */
  | { readonly type: "silent"; readonly why: string }
  | { readonly type: "absent" };

export type PortFindings =
  | { readonly type: "none" }
  | { readonly type: "answers"; readonly port: number }
  | { readonly type: "fails"; readonly port: number; readonly why: string };

/** One of several brokers that could not be used while another could. */
export type LostBroker = { readonly url: string; readonly why: string };

export type BrokerFindings =
  | {
      readonly type: "negotiated";
      readonly url: string;
      readonly said: BrokerSaid;
      readonly lost: readonly LostBroker[];
    }
  | { readonly type: "refused" | "incompatible" | "stranger" | "away"; readonly detail: string }
  /** Only the daemon has the keys for it. */
  | { readonly type: "not asked" };

export type MeshFindings = {
  /** How the last daemon here began and ended. */
  readonly lastRun: LastRun | undefined;
  /** What the daemon says is wrong; where none answers, what the broker answers to the keys of the home. */
  readonly findings: readonly Finding[];
  readonly platform: NodeJS.Platform;
  readonly mesh: string;
  readonly dir: string;
  readonly files: readonly FileFinding[];
  /** Which mesh and broker the folder belongs to. */
  readonly membership: "readable" | { readonly problem: string };
  readonly keys: "readable" | "absent" | { readonly problem: string };
  readonly folder: FolderFindings;
  readonly daemon: DaemonFindings;
  readonly port: PortFindings;
  /** The first of them. */
  readonly brokerUrl: string | undefined;
  readonly broker: BrokerFindings;
  /** How far this clock is ahead of the broker's; undefined where the broker does not say. */
  readonly clockAheadMs: number | undefined;
};

export type Judgement = {
  readonly check: string;
  /** A stable word for what was found, where the daemon or the broker has one. */
  readonly code?: FindingCode;
  readonly status: "ok" | "warn" | "fail";
  readonly means: string;
  /** A command, where one helps. */
  readonly fix?: string;
};
