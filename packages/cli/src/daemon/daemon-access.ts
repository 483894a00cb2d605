// The daemon of this home's mesh, as commands talk to it, and what every command says of it first: most odd refusals come
// from a daemon that is still an old one after an upgrade, or whose member was removed from the mesh.
import { createDaemonClient, type DaemonClient, DaemonUnreachable } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { isErrorBody } from "@claudemesh/protocol/errors";
import { hint } from "../hints.ts";
import { formatTime } from "../output/times.ts";
import type { Shell } from "../shell.ts";

const callTimeoutMs = 30_000;
const versionTimeoutMs = 1_000;

/** Says first, on stderr, when the daemon is of another version than the command, or its member is none any more. */
export async function withDaemon<T>(
  shell: Shell,
  paths: MeshPaths,
  use: (daemon: DaemonClient) => Promise<T>,
): Promise<T> {
  await tellAboutDaemon(shell, paths);
  return callDaemon(paths, use);
}

/** Without a word about versions: for commands that ask for the version themselves, or are too often run to ask. */
export async function callDaemon<T>(
  paths: Pick<MeshPaths, "sock">,
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
export async function tellAboutDaemon(shell: Shell, paths: MeshPaths): Promise<void> {
  try {
    const { body } = await callDaemon(paths, (daemon) => daemon.version(), versionTimeoutMs);
    if (isErrorBody(body)) return;
    if (typeof body.membership_ended_at === "number") shell.err(formerMember(body.mesh, body.membership_ended_at));
    if (body.version === shell.version) return;
    const versions = `This command is version ${shell.version}, and the daemon here is ${String(body.version)}`;
    shell.err(hint(shell, `${versions}: run \`claudemesh daemon restart\`.`));
  } catch (error) {
    if (!(error instanceof DaemonUnreachable)) throw error;
  }
}

/** What of a mesh that this home was removed from is said everywhere, and the way back. */
export function formerMember(mesh: string, endedAt: number): string {
  return [
    `This member was removed from ${mesh} (told ${formatTime(endedAt)}): nothing new is taken, and what is queued waits`,
    `until it is too old. Ask an owner for an invite, then: claudemesh daemon remint --mesh ${mesh} --invite <invite>`,
  ].join(" ");
}
