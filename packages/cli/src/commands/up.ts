// `claudemesh up`: a broker, one mesh and a daemon in this process, on SQLite under the home. Nothing to configure;
// starting again finds everything as it was.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunningBroker } from "@claudemesh/broker/start";
import { ensurePrivateDir, meshPaths, readMeshConfig, writeMeshConfig } from "@claudemesh/client/home";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Command } from "commander";
import { type Commands, examples, run, withJson } from "../command.ts";
import { exitCodeOfEnd } from "../daemon/daemon-end.ts";
import { Refused } from "../exit-codes.ts";
import { hintFor } from "../hints.ts";
import { typedCommand } from "../launcher.ts";
import { createMembership, defaultMemberName } from "../mesh/membership.ts";
import { jsonText } from "../output/printable.ts";
import { localUrlOf } from "../share/local-url.ts";
import type { Sharing } from "../share/share.ts";
import type { Shell } from "../shell.ts";
import { boundStop, stopSignal } from "../signals.ts";

export const commands = {
  up: defineUp,
} satisfies Commands;

type Options = {
  json?: boolean;
  mesh: string;
  name?: string;
  listen?: string;
  share?: boolean;
  publicUrl?: string;
  plainHttp?: boolean;
};

const renewCheckMs = 86_400_000;

/**
 * A broker, one mesh and a daemon in this process, on SQLite under the home. Nothing to configure; starting again
 * finds everything as it was.
 */
function defineUp(command: Command, shell: Shell): void {
  withJson(command)
    .option("--mesh <name>", "name of the mesh", "local")
    .option("--name <member>", "your name in the mesh (default: your user name)")
    .option("--listen <host:port>", "where the broker listens (default: 127.0.0.1:7600, or a free port if taken)")
    .option("--share", "let other machines in: listen beyond this one, with a certificate that invites vouch for")
    .option("--public-url <url>", "where other machines reach this one; goes into invites (or CLAUDEMESH_PUBLIC_URL)")
    .option("--plain-http", "allow --listen beyond this machine without TLS, in a network that you trust")
    .action((options: Options) => run(shell, options, () => up(shell, options)));
  examples(
    command,
    "claudemesh up",
    "claudemesh up --share",
    "CLAUDEMESH_HOME=/tmp/mesh claudemesh up --listen 127.0.0.1:0 --json",
  );
}

async function up(shell: Shell, options: Options): Promise<undefined> {
  const paths = meshPaths(shell.home, options.mesh);
  ensurePrivateDir(shell.home);
  const sharing = options.share === true ? await share(shell, options) : undefined;
  const broker = await startLocalBroker(shell, options, sharing).catch((error: unknown) => {
    throw (error as { kind?: unknown }).kind === "locked" ? alreadyUp(shell, options) : error;
  });
  const renewal = setInterval(() => sharing?.renew() && broker.reloadTls(), renewCheckMs).unref();
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
    announce(shell, options, broker, daemon, sharing);
    const end = await Promise.race([asked, daemon.stopped]);
    boundStop();
    await daemon.stop();
    if (typeof end === "object" && end.exitCode !== 0) {
      shell.err(`claudemesh: the daemon stopped: ${end.message}; see ${paths.log}`);
      process.exitCode = exitCodeOfEnd(end, shell.env);
    }
  } finally {
    clearInterval(renewal);
    await broker.stop();
  }
  return undefined;
}

function alreadyUp({ home }: Shell, { mesh }: Options): Refused {
  const message = `claudemesh is up already in ${home}. Look with \`claudemesh daemon status\`, stop it with \`claudemesh daemon down\`.`;
  return new Refused(503, { error: "already_running", message: hintFor({ home, mesh }, message), retryable: false });
}

async function share({ home, env }: Shell, { listen, publicUrl }: Options): Promise<Sharing> {
  const { prepareSharing } = await import("../share/share.ts");
  return prepareSharing(home, { listen, publicUrl: publicUrl ?? (env.CLAUDEMESH_PUBLIC_URL || undefined) });
}

async function startLocalBroker(shell: Shell, options: Options, sharing: Sharing | undefined): Promise<RunningBroker> {
  const { listen, publicUrl, plainHttp } = options;
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
      "plain-http": plainHttp === true ? "true" : undefined,
      ...sharing?.flags,
    };
    return startBroker(readBrokerConfig(flags, shell.env, undefined));
  };
  // Invites name the port: another one than asked for would lead other machines astray.
  if (sharing !== undefined) return start(sharing.flags.listen);
  if (listen !== undefined) return start(listen);
  try {
    return await start("127.0.0.1:7600");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    return start("127.0.0.1:0");
  }
}

/** The mesh is made once; later the config only follows the broker to its port. */
async function ensureMesh(shell: Shell, options: Options, broker: RunningBroker): Promise<void> {
  const url = localUrlOf(broker.url);
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
    const isKnown = config.broker === url && config.broker_key === broker_key;
    // It is our own broker, in this very process: its key needs no proof.
    if (!isKnown) writeMeshConfig(paths, { ...config, broker: url, broker_key });
    return;
  }
  await createMembership({
    home: shell.home,
    mesh: options.mesh,
    broker: url,
    // It is this process, on whatever address it listens.
    plainHttp: true,
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
  sharing: Sharing | undefined,
): void {
  const { mesh } = options;
  if (options.json === true) {
    const addresses = {
      url: broker.url,
      public_url: broker.publicUrl,
      admin_token_file: broker.adminTokenFile,
      socket: daemon.socket,
    };
    const ready = { event: "ready", mesh, ...addresses, http_port: daemon.httpPort ?? null, home: shell.home };
    shell.out(jsonText({ ...ready, pid: process.pid }));
    return;
  }
  const command = typedCommand(shell.env.PATH, process.cwd());
  const lines = [
    `claudemesh is up: mesh ${mesh}, broker ${broker.url}`,
    ...(sharing === undefined ? [] : describeSharing(sharing)),
    `Everything is kept in ${shell.home}`,
    "",
    command === "npx claudemesh" ? "In another terminal, in this folder:" : "In another terminal:",
    `  ${command} send @self "hello"`,
    `  ${command} inbox`,
    `Let another peer in:  ${command} mesh invite --mesh ${mesh}`,
    ...(sharing !== undefined || broker.publicUrl === broker.url ? [] : [`Invites say ${broker.publicUrl}`]),
    "",
    "Ctrl-C stops it; starting again finds everything as it was.",
  ];
  shell.out(hintFor({ home: shell.home, mesh }, lines.join("\n")));
}

function describeSharing({ publicUrl, otherAddresses }: Sharing): string[] {
  const others =
    otherAddresses.length === 0 ? "" : ` (this machine also has ${otherAddresses.join(", ")}: --public-url)`;
  return [`Other machines reach it at ${publicUrl}${others}, if its firewall lets them.`];
}
