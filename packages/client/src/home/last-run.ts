// How the last daemon of a folder started and how it ended, for people who find it not running. It is information, not
// a lock: a daemon that was killed leaves the file as it was while it ran.
import { LocalFileError, readPrivateFile, replacePrivateFile } from "./private-files.ts";

export type LastRun = {
  readonly state: "running" | "ended";
  readonly version: string;
  readonly pid: number;
  readonly started_at: number;
  /** This and the fields below are present where the daemon has ended and could write them. */
  readonly ended_at?: number;
  /** A stable word: `stopped`, or why it could not start or go on. */
  readonly reason?: string;
  readonly message?: string;
};

export function writeLastRun(path: string, run: LastRun): void {
  replacePrivateFile(path, `${JSON.stringify(run)}\n`);
}

/** Undefined where no daemon has run here, or the file cannot be read. */
export function readLastRun(path: string): LastRun | undefined {
  try {
    const run = JSON.parse(readPrivateFile(path)) as Partial<LastRun>;
    const isRun = (run.state === "running" || run.state === "ended") && typeof run.started_at === "number";
    return isRun ? (run as LastRun) : undefined;
  } catch (error) {
    if (error instanceof LocalFileError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Two homes with one key replace each other's connection for as long as both reconnect. */
const replacedReasons: ReadonlySet<string> = new Set(["replaced_by_newer", "older_connection_kept"]);

export function isReplaced(reason: string | undefined): boolean {
  return reason !== undefined && replacedReasons.has(reason);
}

/** Why there is no daemon, as a sentence, and what to type next. */
export function explainAbsence(mesh: string, run: LastRun | undefined): { means: string; next: string } {
  const up = `claudemesh daemon up --mesh ${mesh}`;
  if (run === undefined) return { means: "No daemon is running.", next: up };
  if (run.state === "running") {
    const means = `No daemon is running: the one started at ${when(run.started_at)} (process ${run.pid}) ended without a word, killed or with its machine.`;
    return { means, next: `${up} (its last lines: claudemesh daemon logs --mesh ${mesh})` };
  }
  const ended = `No daemon is running: it ended at ${when(run.ended_at ?? run.started_at)}`;
  if (run.reason === "stopped") return { means: `${ended}, as it was asked to.`, next: up };
  const means = `${ended}: ${(run.message ?? run.reason ?? "it did not say why").replace(/\.$/, "")}.`;
  // The same start would end in the same way.
  if (!isReplaced(run.reason)) return { means, next: `see to that, then: ${up}` };
  const next = `stop the other daemon of this member first, or, where this home is a copy: claudemesh daemon remint --mesh ${mesh} --invite <invite>. Starting both again would end one of them each time`;
  return { means, next };
}

function when(ms: number): string {
  return `${new Date(ms).toISOString().replace("T", " ").slice(0, 19)} UTC`;
}
