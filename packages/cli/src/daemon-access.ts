// The daemon of this home's mesh, as commands talk to it.
import { createDaemonClient, type DaemonClient } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";

const callTimeoutMs = 30_000;

export async function withDaemon<T>(paths: MeshPaths, use: (daemon: DaemonClient) => Promise<T>): Promise<T> {
  const daemon = createDaemonClient({ socketPath: paths.sock, timeoutMs: callTimeoutMs });
  try {
    return await use(daemon);
  } finally {
    daemon.close();
  }
}
