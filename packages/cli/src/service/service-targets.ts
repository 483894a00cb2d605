// The three programs that a service can run, each from the options of its command.
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ensurePrivateDir, meshPaths } from "@claudemesh/client/home";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Command } from "commander";
import { pathsFor, type Shell } from "../shell.ts";
import { brokerAt, daemonOf, type ServedProgram } from "./service-ports.ts";
import { brokerProgram, daemonProgram, type ServiceProgram, upProgram } from "./service-spec.ts";

/** What a service of this kind runs, from the command's options. */
export type ServiceTarget<Options> = {
  /** The words before `install-service`. */
  readonly words: string;
  /** Adds the options that say which program it is; the same for installing and for taking away. */
  readonly choose: (command: Command) => Command;
  /** Adds the options that only installing takes. */
  readonly configure: (command: Command) => Command;
  readonly resolve: (
    shell: Shell,
    options: Options,
    action: "install" | "uninstall",
  ) => Promise<{
    readonly program: ServiceProgram;
    readonly served: ServedProgram;
    /** A sentence on what taking the service away leaves. */
    readonly kept: string;
    /** The options that say which program it is, for typing the command again. */
    readonly chosen: readonly string[];
  }>;
};

export const daemonTarget: ServiceTarget<{ mesh?: string; json?: boolean }> = {
  words: "daemon",
  choose: (command) => command.option("--mesh <name>", "which mesh; optional where the home holds one"),
  configure: (command) => command,
  resolve: async (shell, options, action) => {
    // A mesh that has left this home may have left its service behind, so the name is taken as it is given to remove one.
    const given = action === "uninstall" ? options.mesh : undefined;
    const paths = given === undefined ? pathsFor(shell, options) : meshPaths(shell.home, given);
    const kept = `The daemon's files in ${paths.dir} stay.`;
    return { program: daemonProgram(paths.mesh), served: daemonOf(paths), kept, chosen: ["--mesh", paths.mesh] };
  },
};

type UpOptions = {
  mesh: string;
  name?: string;
  listen?: string;
  share?: boolean;
  publicUrl?: string;
  plainHttp?: boolean;
  json?: boolean;
};

export const upTarget: ServiceTarget<UpOptions> = {
  words: "up",
  choose: (command) => command.option("--mesh <name>", "name of the mesh", "local"),
  configure: (command) =>
    command
      .option("--name <member>", "your name in the mesh (default: your user name)")
      .option("--listen <host:port>", "where the broker listens")
      .option("--share", "let other machines in, as `claudemesh up --share`")
      .option("--public-url <url>", "where other machines reach this one; goes into invites")
      .option("--plain-http", "allow --listen beyond this machine without TLS, as `claudemesh up --plain-http`"),
  resolve: async (shell, { mesh, name, listen, share, publicUrl, plainHttp }) => {
    ensurePrivateDir(shell.home);
    const valued = { "--name": name, "--listen": listen, "--public-url": publicUrl };
    const words = Object.entries(valued).flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
    const switches = [share === true ? "--share" : [], plainHttp === true ? "--plain-http" : []].flat();
    const given = [...words, ...switches];
    const program = upProgram(mesh, given);
    const kept = `Everything in ${shell.home} stays.`;
    return { program, served: daemonOf(meshPaths(shell.home, mesh)), kept, chosen: ["--mesh", mesh, ...given] };
  },
};

export const brokerTarget: ServiceTarget<{ config?: string; json?: boolean }> = {
  words: "broker",
  choose: (command) =>
    command.option(
      "--config <path>",
      "the broker's settings; a service takes them from this file (default: ./broker.toml)",
    ),
  configure: (command) => command,
  resolve: async (shell, options) => {
    const config = resolve(options.config ?? "broker.toml");
    if (!existsSync(config)) {
      const advice = 'for example with  listen = "127.0.0.1:7600"  and  store = "sqlite:/srv/mesh/broker.db"';
      throw new MeshError("invalid_request", `There is no ${config}; write the broker's settings into it, ${advice}.`);
    }
    ensurePrivateDir(shell.home);
    const { readBrokerConfig } = await import("@claudemesh/broker/config");
    // A service sees none of this terminal's variables.
    const { listen, store, adminTokenFile } = readBrokerConfig({}, {}, config);
    const files = [store.kind === "sqlite" ? store.path : "./broker.admin-token", adminTokenFile ?? []].flat();
    const writes = [...new Set(files.map((file) => dirname(resolve(dirname(config), file))))];
    return {
      program: brokerProgram(config, writes),
      served: brokerAt(listen),
      kept: "The store and its settings stay.",
      chosen: ["--config", config],
    };
  },
};
