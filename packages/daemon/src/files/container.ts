// Is this process in a container? There the loopback may be shared with other containers, so the local API stays on its
// Unix socket unless the settings say otherwise.
import { existsSync, readFileSync } from "node:fs";

export type ContainerSigns = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly exists: (path: string) => boolean;
  /** Undefined where the file cannot be read. */
  readonly read: (path: string) => string | undefined;
};

const markerFiles = ["/.dockerenv", "/run/.containerenv"];
const cgroupWords = /docker|containerd|kubepods|libpod|lxc/;

export function isInContainer(signs: ContainerSigns): boolean {
  if ((signs.env.container ?? "") !== "" || signs.env.KUBERNETES_SERVICE_HOST !== undefined) return true;
  if (markerFiles.some(signs.exists)) return true;
  return cgroupWords.test(signs.read("/proc/1/cgroup") ?? "");
}

export function containerSigns(env: ContainerSigns["env"]): ContainerSigns {
  return { env, exists: existsSync, read: readOrUndefined };
}

function readOrUndefined(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}
