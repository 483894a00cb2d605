// `claudemesh daemon …`, for a daemon that runs: ending it and starting it again, what it says of itself, and what it
// has to do now.

import { existsSync } from "node:fs";
import { type DaemonClient, DaemonUnreachable, type Finding, type FindingsBody } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { explainAbsence, readLastRun } from "@claudemesh/client/internal/last-run";
import type { Command } from "commander";
import { type Commands, type CommonOptions, examples, type Outcome, run, withMesh, withTimes } from "../command.ts";
import { callDaemon, withDaemon } from "../daemon/daemon-access.ts";
import { endDaemon, findRunningDaemon, isPartOfUp, serviceOf } from "../daemon/running-daemon.ts";
import { exitCodes, expectBody, Refused } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { toned, toneOf } from "../output/colours.ts";
import { formatField, formatTable } from "../output/table.ts";
import { formatTime } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  "daemon down": defineDown,
  "daemon restart": defineRestart,
  "daemon status": defineStatus,
  "daemon reconnect": defineReconnect,
  "daemon version": defineVersion,
  "daemon reload": defineReload,
  "daemon rotate-token": defineRotateToken,
} satisfies Commands;

/** Asks the running daemon to end and waits until it has. Rows stay for the next start. */
function defineDown(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const pid = await findRunningDaemon(paths);
      if (pid === undefined) {
        return { value: { mesh: paths.mesh, stopped: false }, text: `No daemon of ${paths.mesh} is running.` };
      }
      const hadBroker = isPartOfUp(pid);
      await endDaemon(paths, pid);
      const text = hadBroker
        ? `\`claudemesh up\` has stopped: the daemon of ${paths.mesh}, and the broker that ran with it.`
        : `The daemon of ${paths.mesh} has stopped.`;
      return { value: { mesh: paths.mesh, stopped: true, pid, broker_stopped: hadBroker }, text };
    }),
  );
  examples(command, "claudemesh daemon down");
}

/**
 * Down, then up in the background. What systemd runs is systemd's to restart: started from here it would live on
 * outside its service.
 */
function defineRestart(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, () => restartDaemon(shell, pathsFor(shell, options))),
  );
  examples(command, "claudemesh daemon restart", "claudemesh daemon restart --mesh acme --json");
}

async function restartDaemon(shell: Shell, paths: MeshPaths): Promise<Outcome> {
  const pid = await findRunningDaemon(paths);
  if (pid !== undefined) {
    const service = serviceOf(pid);
    if (service !== undefined) {
      const systemctl = service.scope === "user" ? "systemctl --user" : "sudo systemctl";
      throw new Error(`This daemon runs as a service; restart it with: ${systemctl} restart ${service.unit}`);
    }
    if (isPartOfUp(pid)) {
      throw new Error(
        "This daemon is part of `claudemesh up`; stop that with Ctrl-C in its terminal and start it again.",
      );
    }
    if (!existsSync(paths.keypair)) {
      throw new Error(
        "This daemon is ephemeral and its keys would end with it: stop it with `claudemesh daemon down`, and start another with a new invite.",
      );
    }
    await endDaemon(paths, pid);
  }
  const { startDaemonInBackground } = await import("../daemon/daemon-start.ts");
  return startDaemonInBackground(shell, paths);
}

/**
 * What the daemon says of itself, and what is wrong here and in its mesh. Exit code 1 where something fails; where no
 * daemon runs, why the last one ended.
 */
function defineStatus(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, () => showStatus(shell, pathsFor(shell, options))),
  );
  examples(command, "claudemesh daemon status", "claudemesh daemon status --json");
}

const stranger =
  "OFFLINE, NOT OUR BROKER: what answers at its address has not proven the key that this home trusts. Sends are kept.";

async function showStatus(shell: Shell, paths: MeshPaths): Promise<Outcome> {
  const { health, report } = await withDaemon(shell, paths, async (daemon) => ({
    health: expectBody(await daemon.health()),
    report: await askFindings(daemon),
  })).catch((error: unknown) => {
    throw error instanceof DaemonUnreachable && !error.sent && !error.timedOut ? noDaemon(paths) : error;
  });
  if (!report.ok) process.exitCode = exitCodes.failed;
  // The daemon's own word is of its connection and its drain; what its mesh reports counts as much.
  const shown = { ...health, status: report.ok ? health.status : ("degraded" as const) };
  const table = formatTable(["WHAT", "IS"], flatten(shown), shell.columns);
  const loudly = health.broker.reason === "not_our_broker" ? [stranger] : [];
  const text = [...loudly, table, ...describeKey(health.broker.broker_key), ...describeFindings(report.findings)].join(
    "\n",
  );
  return { value: { ...shown, ...report }, text };
}

/** A daemon that still runs the version of before an upgrade may not know the question; its health is shown all the same. */
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

/**
 * The running daemon tries to connect now, instead of at its next try. Says what came of it; exit code 3 where no
 * broker was reached.
 */
function defineReconnect(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      await withDaemon(shell, paths, async (daemon) => expectBody(await daemon.reconnect()));
      const { describeBroker, waitUntilSettled } = await import("../daemon/daemon-settling.ts");
      const settled = await waitUntilSettled(paths, () => false);
      const { broker } = settled;
      if (broker.state !== "online") process.exitCode = exitCodes.unreachable;
      const { url } = broker;
      return {
        value: { broker },
        text: hint(shell, `${describeBroker(settled)}${url === undefined ? "" : `\nAt      ${url}`}`),
      };
    }),
  );
  examples(command, "claudemesh daemon reconnect", "claudemesh daemon reconnect --mesh acme --json");
}

/** Says so when command and daemon differ. */
function defineVersion(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const daemon = await callDaemon(paths, async (client) => expectBody(await client.version()));
      const differ = daemon.version !== shell.version;
      const advice = differ ? "\nThey differ: run `claudemesh daemon restart` to have one version." : "";
      const text = `command ${shell.version}\ndaemon  ${daemon.version}${advice}`;
      return { value: { command: shell.version, daemon }, text };
    }),
  );
  examples(command, "claudemesh daemon version --json");
}

/** The running daemon reads config.toml again, and says what took effect. */
function defineReload(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const value = await withDaemon(shell, paths, async (daemon) => expectBody(await daemon.reload()));
      const { applied, needs_restart } = value;
      const lines = [
        applied.length === 0 ? `Nothing in ${paths.config} took effect anew.` : `In effect: ${applied.join(", ")}`,
        ...(needs_restart.length === 0
          ? []
          : [hint(shell, `Only after \`claudemesh daemon restart\`: ${needs_restart.join(", ")}`)]),
      ];
      return { value, text: lines.join("\n") };
    }),
  );
  examples(command, "claudemesh daemon reload", "claudemesh daemon reload --mesh acme --json");
}

/** A new local token for programs that use the loopback. */
function defineRotateToken(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const rotation = await withDaemon(shell, paths, async (daemon) => expectBody(await daemon.rotateToken()));
      const until = formatTime(rotation.old_token_valid_until);
      const text = `The new token is in ${paths.localToken}; the old one is good until ${until} UTC.`;
      return { value: { ...rotation, token_file: paths.localToken }, text };
    }),
  );
  examples(command, "claudemesh daemon rotate-token", "claudemesh daemon rotate-token --mesh acme --json");
}
