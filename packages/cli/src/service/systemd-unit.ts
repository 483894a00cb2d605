// The systemd unit of one of our programs, which shuts it in as far as a Node process can be that must write its home and reach a
// broker anywhere. A user's manager needs user namespaces for that; where a host has none, the basic unit starts.
// Why: docs/decisions/0080.
import { exitCodes } from "../exit-codes.ts";
import { checkWritable, type ServiceSpec, serviceEnvironment } from "./service-spec.ts";

export function systemdUnitName({ program }: Pick<ServiceSpec, "program">): string {
  return `${program.unit}.service`;
}

export type Confinement =
  | "full"
  /** What needs neither privileges nor namespaces; for a user's unit alone. */
  | "basic";

export function systemdUnit(spec: ServiceSpec, confinement: Confinement = "full"): string {
  checkWritable(spec);
  const isSystem = spec.scope === "system";
  const environment = Object.entries(serviceEnvironment(spec)).map(([name, value]) => environmentLine(name, value));
  const sections: [string, readonly string[]][] = [
    ["Unit", [`Description=${spec.program.description}`, ...(isSystem ? bootOrder(spec) : []), ...rate]],
    [
      "Service",
      [
        "Type=exec",
        `ExecStart=${commandLine(spec.launcher, spec.program.args)}`,
        ...(spec.program.folder === "/" ? [] : [`WorkingDirectory=${workingDirectory(spec.program.folder)}`]),
        ...environment,
        ...(isSystem ? account(spec) : []),
        ...lifetime,
        ...hardening,
        // A user's manager may make the other namespaces inside one for users, and nowhere else.
        ...(isSystem || confinement === "basic" ? [] : ["PrivateUsers=yes"]),
        ...(confinement === "basic" ? [] : [...cache(spec), ...isolation(spec)]),
      ],
    ],
    ["Install", [`WantedBy=${isSystem ? "multi-user" : "default"}.target`]],
  ];
  return sections.map(([name, lines]) => `[${name}]\n${lines.join("\n")}\n`).join("\n");
}

/** The line by which a unit is known as one that was written for this home. */
export function systemdHomeMark(spec: ServiceSpec): string {
  return environmentLine("CLAUDEMESH_HOME", spec.home);
}

// The daemon reconnects by itself, so it waits for no network; but its files must be there.
const bootOrder = (spec: ServiceSpec) => ["After=network.target", `RequiresMountsFor=${foldersOf(spec)}`];

/** A daemon that cannot start says so five times, and then no more until the service is started again. */
const rate = ["StartLimitIntervalSec=120", "StartLimitBurst=5"];

const lifetime = [
  "Restart=on-failure",
  "RestartSec=2",
  // Wrong usage stays wrong; and a daemon that another one of its key has replaced would only replace that one again.
  `RestartPreventExitStatus=${exitCodes.usage} ${exitCodes.conflict}`,
  // The daemon ends within 5 s of SIGTERM; the launcher has become the daemon by then.
  "KillSignal=SIGTERM",
  "KillMode=mixed",
  "TimeoutStopSec=15",
  "UMask=0077",
];

/** Works without privileges. V8 writes code that it runs, so MemoryDenyWriteExecute is not among them. */
const hardening = [
  "NoNewPrivileges=yes",
  "LockPersonality=yes",
  "RestrictNamespaces=yes",
  "RestrictRealtime=yes",
  "RestrictSUIDSGID=yes",
  // AF_NETLINK is how a process reads the addresses of the host's interfaces.
  "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
  "SystemCallArchitectures=native",
  "SystemCallFilter=@system-service",
  "SystemCallFilter=~@privileged @resources",
  "SystemCallErrorNumber=EPERM",
];

const account = (spec: ServiceSpec) => [
  // By number: not every name that an account may have is one to systemd.
  `User=${spec.owner.uid}`,
  `Group=${spec.owner.gid}`,
];

/** The launcher keeps compiled code there, and would find no other folder that it may write. */
const cache = (spec: ServiceSpec) => [
  `CacheDirectory=${spec.program.unit}`,
  "CacheDirectoryMode=0700",
  `Environment=XDG_CACHE_HOME=%C/${spec.program.unit}`,
];

const isolation = (spec: ServiceSpec) => [
  "CapabilityBoundingSet=",
  "AmbientCapabilities=",
  "ProtectSystem=strict",
  "ProtectHome=read-only",
  `ReadWritePaths=${foldersOf(spec)}`,
  // A folder that lies in there must stay in sight.
  ...([spec.home, ...spec.program.writes].some((path) => /^\/(?:var\/)?tmp\//.test(path)) ? [] : ["PrivateTmp=yes"]),
  "PrivateDevices=yes",
  "DevicePolicy=closed",
  "ProtectClock=yes",
  "ProtectControlGroups=yes",
  "ProtectHostname=yes",
  "ProtectKernelLogs=yes",
  "ProtectKernelModules=yes",
  "ProtectKernelTunables=yes",
  "ProtectProc=invisible",
  "ProcSubset=pid",
  "RemoveIPC=yes",
  "KeyringMode=private",
];

/** Specifiers begin with a percent sign everywhere; inside quotes, backslash and quote are escaped. */
function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&").replaceAll("%", "%%")}"`;
}

function environmentLine(name: string, value: string): string {
  return `Environment=${quoted(`${name}=${value}`)}`;
}

function foldersOf({ home, program }: ServiceSpec): string {
  return [...new Set([home, ...program.writes])].map(pathWord).join(" ");
}

/** The one path that systemd takes to the end of its text, without quotes. */
function workingDirectory(path: string): string {
  return path.replaceAll("%", "%%");
}

function pathWord(path: string): string {
  return quoted(path);
}

/**
 * A dollar sign is itself in the program's path and doubled in arguments. A path with quotes or backslashes systemd takes
 * for no program's; as an argument of the shell, which the launcher starts with anyway, it may have them.
 */
function commandLine(launcher: string, args: readonly string[]): string {
  const isPlain = !/["'\\]/.test(launcher);
  const program = isPlain ? [quoted(launcher)] : ["/bin/sh", argumentWord(launcher)];
  return [...program, ...args.map(argumentWord)].join(" ");
}

function argumentWord(text: string): string {
  return quoted(text.replaceAll("$", "$$$$"));
}
