// What installing a service means on this platform: which file says what, and which commands make the service manager
// follow it. Decided here, from facts; done in install-service.ts.
import { join } from "node:path";
import { launchdHomeMark, launchdLabel, launchdPlist } from "./launchd-plist.ts";
import type { ServiceSpec } from "./service-spec.ts";
import { systemdHomeMark, systemdUnit, systemdUnitName } from "./systemd-unit.ts";

/** A program and its arguments. */
export type ServiceCommand = readonly string[];

export type ServicePlan = {
  readonly kind: "systemd" | "launchd";
  readonly scope: ServiceSpec["scope"];
  /** The unit or the label. */
  readonly name: string;
  readonly path: string;
  readonly text: string;
  /** For a host where `text` does not start: the same service, shut in less far. */
  readonly basicText: string | undefined;
  /** Stands in every file that was written for this home, and in no other. */
  readonly mark: string;
  /** What shows that the service manager runs: a folder that only it makes; undefined where it always does. */
  readonly aliveFolder: string | undefined;
  /** Ends well when the manager holds this service as running. */
  readonly probe: ServiceCommand;
  /** Tells the manager about a new or changed file. */
  readonly register: readonly ServiceCommand[];
  readonly start: ServiceCommand;
  /** Until it is started again, now or at the next boot. */
  readonly halt: ServiceCommand;
  /** Ends it for good, before the file goes; only of use to a running service where `onlyIfRunning`. */
  readonly disable: { readonly command: ServiceCommand; readonly onlyIfRunning: boolean };
  /** After the file has gone. */
  readonly forget: readonly ServiceCommand[];
  /** A sentence that the user who installs it should read. */
  readonly advice: string | undefined;
};

export type PlatformFacts = {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly userHome: string;
};

export function planService(spec: ServiceSpec, facts: PlatformFacts): ServicePlan {
  if (facts.platform === "linux") return planSystemd(spec, facts);
  if (facts.platform === "darwin") return planLaunchd(spec, facts);
  throw new Error(
    `There are services for systemd (Linux) and launchd (macOS), and this is ${facts.platform}. Let something of your own keep this running: ${spec.launcher} ${spec.program.args.join(" ")}`,
  );
}

function planSystemd(spec: ServiceSpec, { env, userHome }: PlatformFacts): ServicePlan {
  const isUser = spec.scope === "user";
  const name = systemdUnitName(spec);
  // A relative XDG folder is invalid by its specification, and systemd uses the default then.
  const config = env.XDG_CONFIG_HOME?.startsWith("/") ? env.XDG_CONFIG_HOME : join(userHome, ".config");
  const folder = isUser ? join(config, "systemd", "user") : "/etc/systemd/system";
  const systemctl = (...args: string[]) => ["systemctl", ...(isUser ? ["--user"] : []), ...args];
  return {
    kind: "systemd",
    scope: spec.scope,
    name,
    path: join(folder, name),
    text: systemdUnit(spec),
    basicText: isUser ? systemdUnit(spec, "basic") : undefined,
    mark: systemdHomeMark(spec),
    aliveFolder: "/run/systemd/system",
    probe: systemctl("is-active", "--quiet", name),
    register: [systemctl("daemon-reload"), systemctl("enable", name)],
    start: systemctl("start", name),
    halt: systemctl("stop", name),
    disable: { command: systemctl("disable", "--now", name), onlyIfRunning: false },
    forget: [systemctl("daemon-reload")],
    advice: isUser ? "To have it run while you are not logged in:  loginctl enable-linger" : undefined,
  };
}

function planLaunchd(spec: ServiceSpec, { userHome }: PlatformFacts): ServicePlan {
  const isUser = spec.scope === "user";
  const name = launchdLabel(spec);
  const path = join(isUser ? join(userHome, "Library", "LaunchAgents") : "/Library/LaunchDaemons", `${name}.plist`);
  const domain = isUser ? `gui/${spec.owner.uid}` : "system";
  const unload = ["launchctl", "bootout", `${domain}/${name}`];
  return {
    kind: "launchd",
    scope: spec.scope,
    name,
    path,
    text: launchdPlist(spec),
    basicText: undefined,
    mark: launchdHomeMark(spec),
    aliveFolder: undefined,
    probe: ["launchctl", "print", `${domain}/${name}`],
    register: [],
    start: ["launchctl", "bootstrap", domain, path],
    halt: unload,
    disable: { command: unload, onlyIfRunning: true },
    forget: [],
    advice: undefined,
  };
}
