// The way from "this machine" to its daemon: which home, which mesh, which socket. For programs that are told no more
// than a command is; whoever knows the socket uses daemon-client.ts.
import { chooseMesh, homeDir, meshPaths } from "../home/home.ts";
import { createDaemonClient, type DaemonClient } from "./daemon-client.ts";

export type LocalDaemonOptions = {
  /** Default: that of `$CLAUDEMESH_MESH` (where no home is given) or of `claudemesh mesh use`, or the only one. */
  readonly mesh?: string;
  /** `$CLAUDEMESH_HOME`, or `~/.claudemesh`. */
  readonly home?: string;
  /** For each call. */
  readonly timeoutMs?: number;
};

const defaultTimeoutMs = 30_000;

/** Connects to nothing yet: whether a daemon runs shows at the first call. */
export function openLocalDaemon(options: LocalDaemonOptions = {}): DaemonClient {
  const { home = homeDir(process.env), mesh, timeoutMs = defaultTimeoutMs } = options;
  // Who names a home means its own meshes, not the one that the environment has chosen for another.
  const env = options.home === undefined ? process.env : {};
  return createDaemonClient({ socketPath: meshPaths(home, chooseMesh(home, mesh, env)).sock, timeoutMs });
}
