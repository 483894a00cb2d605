// `claudemesh daemon up`: the daemon of one mesh, in the foreground or left running in the background.
import { startDaemon } from "@claudemesh/daemon/start";
import type { Command } from "commander";
import { startInBackground } from "../background.ts";
import { examples, run, withMesh } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { stopSignal } from "../signals.ts";

type Options = { mesh?: string; json?: boolean; foreground?: boolean };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--foreground", "stay in this terminal until Ctrl-C")
    .action((options: Options) => run(shell, options, () => (options.foreground ? serve : background)(shell, options)));
  examples(command, "claudemesh daemon up", "claudemesh daemon up --mesh acme --foreground --json");
}

async function serve(shell: Shell, options: Options): Promise<undefined> {
  const { mesh } = pathsFor(shell, options);
  const daemon = await startDaemon({ home: shell.home, mesh, env: shell.env, version: shell.version });
  const asked = stopSignal();
  const ready = { event: "ready", mesh, socket: daemon.socket, http_port: daemon.httpPort ?? null, pid: process.pid };
  if (options.json === true) shell.out(JSON.stringify(ready));
  else shell.out(describe(mesh, daemon.socket, daemon.httpPort));
  const end = await Promise.race([asked, daemon.stopped]);
  await daemon.stop();
  if (typeof end === "object" && end.exitCode !== 0) {
    shell.err(`claudemesh: the daemon stopped: ${end.message}`);
    process.exitCode = exitCodes.failed;
  }
  return undefined;
}

async function background(shell: Shell, options: Options) {
  const { mesh, log } = pathsFor(shell, options);
  const args = ["daemon", "up", "--foreground", "--json", "--mesh", mesh];
  const ready = await startInBackground(args, shell.env, log);
  return { value: ready, text: describe(mesh, String(ready.socket), ready.http_port as number | null) };
}

function describe(mesh: string, socket: string, httpPort: number | null | undefined): string {
  const http = httpPort == null ? "" : `\nHTTP    127.0.0.1:${httpPort}`;
  return `The daemon of ${mesh} is up.\nSocket  ${socket}${http}\nTry:  claudemesh send @self "hello"`;
}
