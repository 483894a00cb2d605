// `claudemesh up`: a broker, one mesh and a daemon in this process, on SQLite under the home. Nothing to configure;
// starting again finds everything as it was.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunningBroker } from "@claudemesh/broker/start";
import { ensurePrivateDir, meshPaths, readMeshConfig, writeMeshConfig } from "@claudemesh/client/home";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Command } from "commander";
import { examples, run, withJson } from "../command.ts";
import { exitCodes, Refused } from "../exit-codes.ts";
import { typedCommand } from "../launcher.ts";
import { createMembership, defaultMemberName } from "../membership.ts";
import { jsonText } from "../output/printable.ts";
import type { Shell } from "../shell.ts";
import { boundStop, stopSignal } from "../signals.ts";

type Options = { json?: boolean; mesh: string; name?: string; listen?: string; publicUrl?: string };

export function define(command: Command, shell: Shell): void {
  withJson(command)
    .option("--mesh <name>", "name of the mesh", "local")
    .option("--name <member>", "your name in the mesh (default: your user name)")
    .option("--listen <host:port>", "where the broker listens (default: 127.0.0.1:7600, or a free port if taken)")
    .option("--public-url <url>", "where other hosts reach the broker; goes into invites (or CLAUDEMESH_PUBLIC_URL)")
    .action((options: Options) => run(shell, options, () => up(shell, options)));
  examples(
    command,
    "claudemesh up",
    "CLAUDEMESH_HOME=/tmp/mesh claudemesh up --listen 127.0.0.1:0 --json",
    "claudemesh up --listen 0.0.0.0:7600 --public-url http://192.168.7.2:7600",
  );
}

async function up(shell: Shell, options: Options): Promise<undefined> {
  const paths = meshPaths(shell.home, options.mesh);
  ensurePrivateDir(shell.home);
  const broker = await startLocalBroker(shell, options).catch((error: unknown) => {
    throw (error as { kind?: unknown }).kind === "locked" ? alreadyUp(shell) : error;
  });
  try {
    await ensureMesh(shell, options, broker);
    const { startDaemon } = await import("@claudemesh/daemon/start");
    const daemon = await startDaemon({
      home: shell.home,
      mesh: options.mesh,
      env: shell.env,
      version: shell.version,
    });
    const asked = stopSignal();
    announce(shell, options, broker, daemon);
    const end = await Promise.race([asked, daemon.stopped]);
    boundStop();
    await daemon.stop();
    if (typeof end === "object" && end.exitCode !== 0) {
      shell.err(`claudemesh: the daemon stopped: ${end.message}; see ${paths.log}`);
      process.exitCode = exitCodes.failed;
    }
  } finally {
    await broker.stop();
  }
  return undefined;
}

function alreadyUp({ home }: Shell): Refused {
  const message = `claudemesh is up already in ${home}. Look with \`claudemesh daemon status\`, stop it with \`claudemesh daemon down\`.`;
  return new Refused(503, { error: "already_running", message, retryable: false });
}

async function startLocalBroker(shell: Shell, { listen, publicUrl }: Options): Promise<RunningBroker> {
  const folder = join(shell.home, "broker");
  ensurePrivateDir(folder);
  const [{ readBrokerConfig }, { startBroker }] = await Promise.all([
    import("@claudemesh/broker/config"),
    import("@claudemesh/broker/start"),
  ]);
  const start = (address: string) => {
    const flags = {
      listen: address,
      store: `sqlite:${join(folder, "broker.db")}`,
      "log-level": "warn",
      "public-url": publicUrl,
    };
    return startBroker(readBrokerConfig(flags, shell.env, undefined));
  };
  if (listen !== undefined) return start(listen);
  try {
    return await start("127.0.0.1:7600");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    return start("127.0.0.1:0");
  }
}

/** The daemon beside it needs no network, and every address of the host is none to connect to. */
function localUrl({ url }: RunningBroker): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

/** The mesh is made once; later the config only follows the broker to its port. */
async function ensureMesh(shell: Shell, options: Options, broker: RunningBroker): Promise<void> {
  const paths = meshPaths(shell.home, options.mesh);
  if (existsSync(paths.config)) {
    const config = readMeshConfig(paths);
    if (!(await broker.hasMesh(config.id))) {
      throw new MeshError(
        "exists_with_other_content",
        `This home's mesh ${options.mesh} lives on another broker (${config.broker}); run \`claudemesh daemon up --mesh ${options.mesh}\`, or choose another name with --mesh.`,
      );
    }
    const { brokerKey: broker_key } = broker;
    const isKnown = config.broker === localUrl(broker) && config.broker_key === broker_key;
    // It is our own broker, in this very process: there is nobody to ask about its key.
    if (!isKnown) writeMeshConfig(paths, { ...config, broker: localUrl(broker), broker_key });
    return;
  }
  await createMembership({
    home: shell.home,
    mesh: options.mesh,
    broker: localUrl(broker),
    adminToken: readFileSync(broker.adminTokenFile, "utf8").trim(),
    name: options.name ?? defaultMemberName(),
    brokerKey: broker.brokerKey,
  });
}

function announce(
  shell: Shell,
  options: Options,
  broker: RunningBroker,
  daemon: { readonly socket: string; readonly httpPort: number | undefined },
): void {
  const { mesh } = options;
  if (options.json === true) {
    const places = {
      url: broker.url,
      public_url: broker.publicUrl,
      admin_token_file: broker.adminTokenFile,
      socket: daemon.socket,
    };
    const ready = { event: "ready", mesh, ...places, http_port: daemon.httpPort ?? null, home: shell.home };
    shell.out(jsonText({ ...ready, pid: process.pid }));
    return;
  }
  const command = typedCommand(shell.env.PATH, process.cwd());
  const lines = [
    `claudemesh is up: mesh ${mesh}, broker ${broker.url}`,
    `Everything is kept in ${shell.home}`,
    "",
    command === "npx claudemesh" ? "In another terminal, in this folder:" : "In another terminal:",
    `  ${command} send @self "hello"`,
    `  ${command} inbox`,
    `Let another peer in:  ${command} mesh invite --mesh ${mesh}`,
    ...(broker.publicUrl === broker.url ? [] : [`Invites say ${broker.publicUrl}`]),
    "",
    "Ctrl-C stops it; starting again finds everything as it was.",
  ];
  shell.out(lines.join("\n"));
}
