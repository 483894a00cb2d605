// Reading what this machine says of itself: its id and its network addresses, by operating system. What follows from
// them is decided in core/host-fingerprint.ts.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { hasCode } from "@claudemesh/client/internal/private-files";
import { chooseStableMac, type HostFacts, type NetworkInterface } from "../core/host-fingerprint.ts";

export type HostSources = {
  readonly platform: NodeJS.Platform;
  /** Undefined where there is no such file; throws where there is one and it cannot be read. */
  readonly readText: (path: string) => string | undefined;
  /** Empty where there is no such folder. */
  readonly listFolder: (path: string) => readonly string[];
  /** Where a link really leads. */
  readonly resolveLink: (path: string) => string;
  /** What macOS prints about the machine; throws where it does not. */
  readonly describeMac: () => string;
  /** As the system's library lists them: up, and with an address. */
  readonly listInterfaces: () => readonly { readonly name: string; readonly mac: string }[];
};

type HostId = Pick<HostFacts, "hostId" | "hostIdUnreadable">;

export function readHostFacts(sources: HostSources = systemSources): HostFacts {
  return { ...readHostId(sources), mac: chooseStableMac(readInterfaces(sources)) };
}

function readHostId(sources: HostSources): HostId {
  if (sources.platform === "linux") return readMachineId(sources);
  if (sources.platform === "darwin") return readPlatformUuid(sources);
  return { hostId: undefined, hostIdUnreadable: false };
}

const machineIdPaths = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/** A file that is empty, or says that it is not initialised yet, is as good as none. */
function readMachineId({ readText }: HostSources): HostId {
  let hostIdUnreadable = false;
  for (const path of machineIdPaths) {
    try {
      const id = (readText(path) ?? "").trim().toLowerCase().replaceAll("-", "");
      if (/^[0-9a-f]{32}$/.test(id) && !/^0+$/.test(id)) return { hostId: id, hostIdUnreadable: false };
    } catch (error) {
      if (!(error instanceof Error && "code" in error)) throw error;
      hostIdUnreadable = true;
    }
  }
  return { hostId: undefined, hostIdUnreadable };
}

function readPlatformUuid({ describeMac }: HostSources): HostId {
  let text: string;
  try {
    text = describeMac();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { hostId: undefined, hostIdUnreadable: true };
  }
  const [, uuid] = /"IOPlatformUUID"\s*=\s*"([0-9A-Fa-f-]{36})"/.exec(text) ?? [];
  return { hostId: uuid?.toLowerCase(), hostIdUnreadable: uuid === undefined };
}

const linuxInterfaces = "/sys/class/net";

function readInterfaces(sources: HostSources): readonly NetworkInterface[] {
  const names = sources.platform === "linux" ? sources.listFolder(linuxInterfaces) : [];
  if (names.length === 0) return sources.listInterfaces().map((each) => ({ ...each, isVirtual: false }));
  return names.flatMap((name) => readLinuxInterface(sources, name) ?? []);
}

/** An interface that goes away while it is looked at was not a stable one. */
function readLinuxInterface(sources: HostSources, name: string): NetworkInterface | undefined {
  const folder = join(linuxInterfaces, name);
  try {
    const mac = (sources.readText(join(folder, "address")) ?? "").trim();
    // 0 is the address of the hardware; others were made up, copied or set.
    const given = (sources.readText(join(folder, "addr_assign_type")) ?? "0").trim();
    const isVirtual = sources.resolveLink(folder).includes("/devices/virtual/") || given !== "0";
    return { name, mac, isVirtual };
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}

const ioregTimeoutMs = 5_000;

const systemSources: HostSources = {
  platform: process.platform,
  readText: (path) => {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return undefined;
      throw error;
    }
  },
  listFolder: (path) => {
    try {
      return readdirSync(path);
    } catch (error) {
      if (error instanceof Error && "code" in error) return [];
      throw error;
    }
  },
  resolveLink: (path) => realpathSync(path),
  describeMac: () => {
    const args = ["-rd1", "-c", "IOPlatformExpertDevice"];
    const { error, status, stdout } = spawnSync("/usr/sbin/ioreg", args, { encoding: "utf8", timeout: ioregTimeoutMs });
    if (error !== undefined) throw error;
    if (status !== 0) throw new Error(`ioreg ended with exit code ${status}`);
    return stdout;
  },
  listInterfaces: () =>
    Object.entries(networkInterfaces()).flatMap(([name, addresses]) => {
      const [first] = addresses ?? [];
      return first === undefined ? [] : [{ name, mac: first.mac }];
    }),
};
