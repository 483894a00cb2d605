// `claudemesh status` and `claudemesh audit`: where a message is, and whether the records of a mesh balance.

import { resolve } from "node:path";
import type { AuditReport } from "@claudemesh/client/daemon";
import { chooseMesh, type MeshPaths, meshPaths } from "@claudemesh/client/home";
import type { Command } from "commander";
import { type Commands, type CommonOptions, examples, type Outcome, run, withMesh, withTimes } from "../command.ts";
import { callDaemon, tellAboutDaemon, withDaemon } from "../daemon/daemon-access.ts";
import { exitCodes, expectBody } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { messageId } from "../input/arguments.ts";
import { describeMessage } from "../output/message-timeline.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  status: defineStatus,
  audit: defineAudit,
} satisfies Commands;

/** Where a message is, as the daemon knows it. Never one "ok": every stage on a line of its own. */
function defineStatus(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .argument("<id>", "client, outbox, inbox or broker id", messageId)
    .action((id: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const facts = await withDaemon(shell, pathsFor(shell, options), async (daemon) =>
          expectBody(await daemon.message(id)),
        );
        return { value: facts, text: describeMessage(facts, shell.columns, (text) => hint(shell, text)) };
      }),
    );
  examples(command, "claudemesh status build-42", "claudemesh status 01JD8Z2V9K3M5N7P9Q1R3S5T7V --json");
}

type AuditOptions = CommonOptions & { readonly home: readonly string[] };

type HomeReport = AuditReport & { readonly home: string };

/**
 * Do the records of outbox, broker, deliveries and inbox balance? Each home's own daemon looks at what is its own;
 * here the answers are put side by side. Exit code 1 for an imbalance, 3 where the broker was away.
 */
function defineAudit(command: Command, shell: Shell): void {
  const gather = (path: string, before: readonly string[]) => [...before, path];
  withMesh(command)
    .option("--home <path>", "also a home of another member on this machine; may be repeated", gather, [])
    .action((options: AuditOptions) => run(shell, options, () => auditHomes(shell, options)));
  examples(command, "claudemesh audit", "claudemesh audit --home /srv/bob/.claudemesh --json");
}

async function auditHomes(shell: Shell, options: AuditOptions): Promise<Outcome> {
  const own = pathsFor(shell, options);
  const others = [...new Set(options.home.map((home) => resolve(home)))].filter((home) => home !== own.home);
  const allPaths = [own, ...others.map((home) => meshPaths(home, chooseMesh(home, own.mesh)))];
  const homes: HomeReport[] = [];
  for (const paths of allPaths) homes.push({ home: paths.home, ...(await auditHome(shell, paths)) });
  const imbalances = homes.flatMap((report) => report.imbalances.map((each) => ({ home: report.home, ...each })));
  const balanced = homes.every((report) => report.balanced);
  const complete = homes.every((report) => report.complete);
  if (!balanced) process.exitCode = exitCodes.failed;
  else if (!complete) process.exitCode = exitCodes.unreachable;
  return { value: { balanced, complete, imbalances, homes }, text: describeHomes(homes, shell.columns) };
}

async function auditHome(shell: Shell, paths: MeshPaths): Promise<AuditReport> {
  await tellAboutDaemon(shell, paths);
  return callDaemon(paths, async (daemon) => expectBody(await daemon.audit()));
}

function describeHomes(homes: readonly HomeReport[], columns: number | undefined): string {
  return homes.map((report) => describeHome(report, homes.length > 1, columns)).join("\n\n");
}

function describeHome(report: HomeReport, isNamed: boolean, columns: number | undefined): string {
  const rows = report.layers.map(({ layer, total, classes, balanced }) => {
    const parts = Object.entries(classes).flatMap(([name, count]) =>
      count === 0 ? [] : [`${count} ${name.replaceAll("_", " ")}`],
    );
    // The outbox is this home's own; of the others nothing is known, or a part, where the broker could not be asked.
    if (!balanced || report.complete || layer === "outbox") {
      return [stateCell(balanced ? "ok" : "FAIL"), layer, String(total), parts.join(" + ")];
    }
    return ["?", layer, total === 0 ? "-" : `${total}+`, total === 0 ? "not looked at" : parts.join(" + ")];
  });
  const unnamed = report.layers.reduce((sum, { imbalances }) => sum + imbalances, 0) - report.imbalances.length;
  return [
    ...(isNamed ? [report.home] : []),
    formatTable(["", "LAYER", "RECORDS", "OF WHICH"], rows, columns),
    ...report.imbalances.map(({ layer, id, what }) => `${layer}: ${id}: ${what}`),
    ...(unnamed > 0 ? [`and ${unnamed} more`] : []),
    ...(report.complete ? [] : ["The broker could not be asked: not everything was looked at."]),
  ].join("\n");
}
