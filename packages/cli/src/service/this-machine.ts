// The facts of this machine and user that a service is planned from.
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname } from "node:path";
import { launcherPath } from "../launcher.ts";
import type { Shell } from "../shell.ts";
import { planService, type ServicePlan } from "./service-plan.ts";
import type { ServiceProgram, ServiceScope, ServiceSpec } from "./service-spec.ts";

export function planServiceHere(shell: Shell, program: ServiceProgram, scope: ServiceScope): ServicePlan {
  const owner = ownerOf(shell.home);
  if (scope === "user" && owner.uid !== process.getuid?.()) {
    throw new Error(
      `${shell.home} belongs to ${owner.name}: run this as that user, or give --system for a service that runs as ${owner.name} from boot on.`,
    );
  }
  const { home } = shell;
  const spec: ServiceSpec = {
    scope,
    program,
    home,
    launcher: launcherPath(),
    nodeFolder: dirname(process.execPath),
    owner,
  };
  return planService(spec, { platform: process.platform, env: shell.env, userHome: shell.env.HOME || homedir() });
}

/** A home that is no longer there was ours: its service can still be taken away. */
function ownerOf(home: string): ServiceSpec["owner"] {
  const { uid, gid } = statSync(home, { throwIfNoEntry: false }) ?? {
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
  };
  const { status, stdout } = spawnSync("id", ["-un", String(uid)], { encoding: "utf8" });
  return { uid, gid, name: status === 0 ? stdout.trim() : String(uid) };
}

/** Writing where only root may write fails with what to type instead. */
export function explainDenied(error: unknown, shell: Shell, plan: ServicePlan, words: readonly string[]): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (plan.scope !== "system" || (code !== "EACCES" && code !== "EPERM")) return error;
  const command = ["sudo", "env", `CLAUDEMESH_HOME=${shell.home}`, launcherPath(), ...words].map(shellWord).join(" ");
  return new Error(`Changing ${plan.path} is for root:  ${command}`, { cause: error });
}

function shellWord(text: string): string {
  return /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
