// What a service must know to run one of our programs: a daemon, `claudemesh up`, or a broker. systemd and launchd write
// it down each in their way.
import { dirname } from "node:path";

export type ServiceScope =
  /** Runs while the user is logged in, or lingers; installed by the user alone. */
  | "user"
  /** Runs from boot on, as the user who owns the home; installed by root. */
  | "system";

/** The program that a service runs, and what tells it from the others. */
export type ServiceProgram = {
  readonly unit: string;
  readonly label: string;
  readonly description: string;
  /** How the launcher is called; it stays in the foreground, because the service manager watches that process. */
  readonly args: readonly string[];
  /** Folders that it writes besides the home. */
  readonly writes: readonly string[];
  /** Where relative paths of its settings begin. */
  readonly folder: string;
};

export type ServiceSpec = {
  readonly scope: ServiceScope;
  readonly program: ServiceProgram;
  /** Absolute, as everything here: a service has no folder that it is started in. */
  readonly home: string;
  readonly launcher: string;
  /** For an installation without a Node of its own: where the Node is that runs this command now. */
  readonly nodeFolder: string;
  /** Who owns the home, and so whom the program runs as. */
  readonly owner: { readonly uid: number; readonly gid: number; readonly name: string };
};

export function daemonProgram(mesh: string): ServiceProgram {
  return {
    unit: `claudemesh-${mesh}`,
    label: `claudemesh.daemon.${mesh}`,
    description: `claudemesh daemon of the mesh ${mesh}`,
    args: ["daemon", "up", "--foreground", "--mesh", mesh],
    writes: [],
    folder: "/",
  };
}

/** `claudemesh up` with the options that it was given. A unit's name never begins as that of a mesh's daemon. */
export function upProgram(mesh: string, options: readonly string[]): ServiceProgram {
  return {
    unit: `claudemesh.up-${mesh}`,
    label: `claudemesh.up.${mesh}`,
    description: `claudemesh broker and daemon of the mesh ${mesh}`,
    args: ["up", "--mesh", mesh, ...options],
    writes: [],
    folder: "/",
  };
}

/** Its settings come from a file, because a unit is readable by every user and a store's address may hold a password. */
export function brokerProgram(config: string, writes: readonly string[]): ServiceProgram {
  return {
    unit: "claudemesh.broker",
    label: "claudemesh.broker",
    description: "claudemesh broker",
    args: ["broker", "serve", "--config", config],
    writes,
    folder: dirname(config),
  };
}

export function serviceEnvironment(spec: ServiceSpec): Readonly<Record<string, string>> {
  return { CLAUDEMESH_HOME: spec.home, PATH: `${spec.nodeFolder}:/usr/local/bin:/usr/bin:/bin` };
}

/** Line breaks and control characters cannot stand in a unit or a plist, and no sane folder has them. */
export function checkWritable(spec: ServiceSpec): void {
  const { writes, folder } = spec.program;
  for (const text of [spec.home, spec.launcher, spec.nodeFolder, folder, ...writes]) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
    if (/[\u0000-\u001f\u007f]/.test(text) || !text.startsWith("/")) {
      throw new Error(`A service cannot be written for the path ${JSON.stringify(text)}; use a plain, absolute one.`);
    }
  }
}
