// What a service must know to run one daemon, whoever runs it: systemd and launchd write it down each in their way.

export type ServiceScope =
  /** Runs while the user is logged in, or lingers; installed by the user alone. */
  | "user"
  /** Runs from boot on, as the user who owns the home; installed by root. */
  | "system";

export type ServiceSpec = {
  readonly scope: ServiceScope;
  readonly mesh: string;
  /** Absolute, as everything here: a service has no folder that it is started in. */
  readonly home: string;
  readonly launcher: string;
  /** For an installation without a Node of its own: where the Node is that runs this command now. */
  readonly nodeFolder: string;
  /** Who owns the home, and so whom the daemon runs as. */
  readonly owner: { readonly uid: number; readonly gid: number; readonly name: string };
};

/** How the launcher is called; it stays in the foreground, because the service manager watches that process. */
export function daemonArguments(spec: ServiceSpec): readonly string[] {
  return ["daemon", "up", "--foreground", "--mesh", spec.mesh];
}

export function serviceEnvironment(spec: ServiceSpec): Readonly<Record<string, string>> {
  return { CLAUDEMESH_HOME: spec.home, PATH: `${spec.nodeFolder}:/usr/local/bin:/usr/bin:/bin` };
}

/** Line breaks and control characters cannot stand in a unit or a plist, and no sane folder has them. */
export function checkWritable(spec: ServiceSpec): void {
  for (const text of [spec.home, spec.launcher, spec.nodeFolder]) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
    if (/[\u0000-\u001f\u007f]/.test(text) || !text.startsWith("/")) {
      throw new Error(`A service cannot be written for the path ${JSON.stringify(text)}; use a plain, absolute one.`);
    }
  }
}
