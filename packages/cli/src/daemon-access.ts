// The daemon of this home's mesh, as commands talk to it, and the word about versions: most odd refusals after an
// upgrade come from a daemon that is still the old one.
import { createDaemonClient, type DaemonClient, DaemonUnreachable } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { isErrorBody } from "@claudemesh/protocol/errors";
import type { Shell } from "./shell.ts";

const callTimeoutMs = 30_000;
const versionTimeoutMs = 1_000;

/** Says first, on stderr, when the daemon is of another version than the command. */
export async function withDaemon<T>(
  shell: Shell,
  paths: MeshPaths,
  use: (daemon: DaemonClient) => Promise<T>,
): Promise<T> {
  await tellIfVersionsDiffer(shell, paths);
  return callDaemon(paths, use);
}

/** Without a word about versions: for commands that ask for the version themselves, or are too often run to ask. */
export async function callDaemon<T>(
  paths: MeshPaths,
  use: (daemon: DaemonClient) => Promise<T>,
  timeoutMs = callTimeoutMs,
): Promise<T> {
  const daemon = createDaemonClient({ socketPath: paths.sock, timeoutMs });
  try {
    return await use(daemon);
  } finally {
    daemon.close();
  }
}

/**
 * Asks on a connection of its own and decides nothing: a daemon that is away or too busy to say its version is no news
 * here, and what became of a request shows on that request's connection alone.
 */
export async function tellIfVersionsDiffer(shell: Shell, paths: MeshPaths): Promise<void> {
  try {
    const { body } = await callDaemon(paths, (daemon) => daemon.version(), versionTimeoutMs);
    if (isErrorBody(body) || body.version === shell.version) return;
    const versions = `This command is version ${shell.version}, and the daemon here is ${String(body.version)}`;
    shell.err(`${versions}: run \`claudemesh daemon restart\`.`);
  } catch (error) {
    if (!(error instanceof DaemonUnreachable)) throw error;
  }
}
