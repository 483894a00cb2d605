// `claudemesh daemon status`: what the daemon says of itself, and what is wrong here and in its mesh. Exit code 1 where
// something fails; where no daemon runs, why the last one ended.
import { type DaemonClient, DaemonUnreachable, type Finding, type FindingsBody } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { explainAbsence, readLastRun } from "@claudemesh/client/last-run";
import type { Command } from "commander";
import { type CommonOptions, examples, type Outcome, run, withMesh, withTimes } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { exitCodes, expectBody, Refused } from "../exit-codes.ts";
import { toned, toneOf } from "../output/colours.ts";
import { formatField, formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, () => showStatus(shell, pathsFor(shell, options))),
  );
  examples(command, "claudemesh daemon status", "claudemesh daemon status --json");
}

const stranger =
  "OFFLINE, NOT OUR BROKER: what answers at its address has not proven the key that this home trusts. Sends are kept.";

async function showStatus(shell: Shell, paths: MeshPaths): Promise<Outcome> {
  const { health, found } = await withDaemon(shell, paths, async (daemon) => ({
    health: expectBody(await daemon.health()),
    found: await askFindings(daemon),
  })).catch((error: unknown) => {
    throw error instanceof DaemonUnreachable && !error.sent && !error.timedOut ? noDaemon(paths) : error;
  });
  if (!found.ok) process.exitCode = exitCodes.failed;
  // The daemon's own word is of its connection and its drain; what its mesh reports counts as much.
  const shown = { ...health, status: found.ok ? health.status : ("degraded" as const) };
  const table = formatTable(["WHAT", "IS"], flatten(shown), shell.columns);
  const loudly = health.broker.reason === "not_our_broker" ? [stranger] : [];
  const text = [...loudly, table, ...describeKey(health.broker.broker_key), ...describeFindings(found.findings)].join(
    "\n",
  );
  return { value: { ...shown, ...found }, text };
}

/** A daemon that still runs the version of before an upgrade may not know the question; its health is told all the same. */
async function askFindings(daemon: Pick<DaemonClient, "findings">): Promise<FindingsBody> {
  const answer = await daemon.findings();
  return answer.status === 404 ? { ok: true, findings: [] } : expectBody(answer);
}

function noDaemon(paths: MeshPaths): Refused {
  const last = readLastRun(paths.lastRun);
  const { means, next } = explainAbsence(paths.mesh, last);
  const body = { error: "daemon_unreachable", message: `${means} To go on: ${next}.`, retryable: true };
  return new Refused(503, { ...body, sent: false, last_run: last ?? null });
}

/** Whole, because it is compared with an owner's, digit by digit. */
function describeKey(key: string | undefined): string[] {
  return key === undefined ? [] : ["", `The key that this home trusts its broker by: ${key}`];
}

function describeFindings(findings: readonly Finding[]): string[] {
  if (findings.length === 0) return ["", "Nothing is wrong."];
  return [
    "",
    ...findings.flatMap(({ code, status, means, fix }) => [
      `${toned(status, toneOf(status))}  ${code}: ${means}`,
      `      ${fix}`,
    ]),
  ];
}

function flatten(value: object, prefix = ""): string[][] {
  return Object.entries(value).flatMap(([key, inner]) => {
    const name = prefix === "" ? key : `${prefix}.${key}`;
    if (typeof inner === "object" && inner !== null) return flatten(inner, name);
    return [[name, formatField(name, inner)]];
  });
}
