// Leaving a daemon running in the background, for the commands that start one, and what all of them say about it.
import type { MeshPaths } from "@claudemesh/client/home";
import { startInBackground } from "./background.ts";
import type { Outcome } from "./command.ts";
import { describeBroker, isHopeless, waitUntilSettled } from "./daemon-settling.ts";
import { exitCodes } from "./exit-codes.ts";
import { hint } from "./hints.ts";
import type { Shell } from "./shell.ts";

export type BackgroundExtras = {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
};

export async function startDaemonInBackground(
  shell: Shell,
  paths: MeshPaths,
  extras: BackgroundExtras = { args: [], env: {} },
): Promise<Outcome> {
  const args = ["daemon", "up", "--foreground", "--json", "--mesh", paths.mesh, ...extras.args];
  const env = { ...shell.env, ...extras.env };
  const { ready, settled } = await startInBackground(args, { home: shell.home, env }, paths.log, (hasEnded) =>
    waitUntilSettled(paths, hasEnded),
  );
  // It runs, and keeps what it has; but that it started is no success.
  if (isHopeless(settled)) process.exitCode = exitCodes.failed;
  const daemon = describeDaemon(paths.mesh, String(ready.socket), ready.http_port as number | null);
  return { value: { ...ready, broker: settled.broker }, text: hint(shell, `${daemon}\n${describeBroker(settled)}`) };
}

export function describeDaemon(mesh: string, socket: string, httpPort: number | null | undefined): string {
  const http = httpPort == null ? "" : `\nHTTP    127.0.0.1:${httpPort}`;
  return `The daemon of ${mesh} is up. Try:  claudemesh send @self "hello"\nSocket  ${socket}${http}`;
}
