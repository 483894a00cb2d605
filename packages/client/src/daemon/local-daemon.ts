// Finds the daemon of this machine: which home, which mesh, which socket. For programs that get no more options than a
// command does; a program that knows the socket uses daemon-client.ts.
import { chooseMesh, homeDir, meshPaths } from "../home/home.ts";
import { createDaemonClient, type DaemonClient } from "./daemon-client.ts";

export type LocalDaemonOptions = {
  /** Default: the mesh of `$CLAUDEMESH_MESH` (where no home is given) or of `claudemesh mesh use`, or the only one. */
  readonly mesh?: string;
  /** `$CLAUDEMESH_HOME`, or `~/.claudemesh`. */
  readonly home?: string;
  /** The time limit of each call. */
  readonly timeoutMs?: number;
};

const defaultTimeoutMs = 30_000;

/** Opens no connection yet: the first call shows whether a daemon runs. */
export function openLocalDaemon(options: LocalDaemonOptions = {}): DaemonClient {
  const { home = homeDir(process.env), mesh, timeoutMs = defaultTimeoutMs } = options;
  // A caller that names a home means that home's meshes, not the mesh that the environment has chosen for another home.
  const env = options.home === undefined ? process.env : {};
  return createDaemonClient({ socketPath: meshPaths(home, chooseMesh(home, mesh, env)).sock, timeoutMs });
}
