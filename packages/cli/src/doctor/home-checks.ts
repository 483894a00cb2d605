// The doctor's judgement of what a machine and a home have in common for all meshes: Node, disk, the home folder, fault
// points. Pure; the facts come from gather.ts.
import type { FileFinding, HomeFindings, Judgement } from "./findings.ts";

const oldestNodeMajor = 24;
const mebibyte = 1_048_576;
const scarceBytes = 512 * mebibyte;
const fullBytes = 64 * mebibyte;

export function judgeHome(facts: HomeFindings): Judgement[] {
  return [judgeNode(facts), judgeHomeFolder(facts), ...judgeDisk(facts), ...judgeShell(facts)];
}

function judgeNode({ nodeVersion }: HomeFindings): Judgement {
  const check = "node";
  if (Number.parseInt(nodeVersion, 10) >= oldestNodeMajor)
    return { check, status: "ok", means: `Node ${nodeVersion}.` };
  return {
    check,
    status: "fail",
    means: `This is Node ${nodeVersion}, and claudemesh needs ${oldestNodeMajor} or newer.`,
    fix: "npm install --global claudemesh (on Linux that brings a Node 24), or install Node 24 from https://nodejs.org",
  };
}

function judgeHomeFolder({ home, homeFolder }: HomeFindings): Judgement {
  if (homeFolder === undefined) {
    return { check: "home", status: "fail", means: `There is no ${home} yet.`, fix: "claudemesh up" };
  }
  return judgeFile(homeFolder, "home") ?? { check: "home", status: "ok", means: `${home} is yours alone.` };
}

function judgeDisk({ freeBytes, home }: HomeFindings): Judgement[] {
  if (freeBytes === undefined) return [];
  const check = "disk";
  const means = `${showBytes(freeBytes)} are free where ${home} is.`;
  if (freeBytes >= scarceBytes) return [{ check, status: "ok", means }];
  const fix = `make room on that disk; see what takes it: du -sh ${shellWord(home)}`;
  return [{ check, code: "disk_low", status: freeBytes < fullBytes ? "fail" : "warn", means, fix }];
}

/** Said only where there is something to say: no other command reports them. */
function judgeShell({ failpointsInShell }: HomeFindings): Judgement[] {
  if (failpointsInShell === undefined) return [];
  return [
    {
      check: "fault points",
      status: "warn",
      means: `CLAUDEMESH_FAILPOINTS is set in this shell (${failpointsInShell}): what is started here fails on purpose.`,
      fix: "unset CLAUDEMESH_FAILPOINTS",
    },
  ];
}

/** Undefined where nothing is wrong with it. */
export function judgeFile(file: FileFinding, check: string): Judgement | undefined {
  const { path, kind, expectedKind, mode, isOurs } = file;
  if (kind !== expectedKind) {
    const means = `${path} is no ${expectedKind} of its own.`;
    return { check, status: "fail", means, fix: `mv ${shellWord(path)} ${shellWord(`${path}.aside`)}` };
  }
  if (!isOurs) {
    const means = `${path} belongs to another user.`;
    return { check, status: "fail", means, fix: `sudo chown "$(id -un)" ${shellWord(path)}` };
  }
  if ((mode & 0o077) === 0) return undefined;
  const means = `${path} has mode ${mode.toString(8).padStart(4, "0")}: others on this machine can get at it.`;
  return { check, status: "fail", means, fix: `chmod ${kind === "folder" ? "700" : "600"} ${shellWord(path)}` };
}

export function showBytes(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1_024 && unit < units.length - 1) {
    value /= 1_024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function shellWord(text: string): string {
  return /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
