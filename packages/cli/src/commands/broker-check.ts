// `claudemesh broker check`: do the rows of all tables fit together? Exit code 1 where anything does not.
import type { OrphanReport } from "@claudemesh/broker/offline";
import type { Command } from "commander";
import { askBroker, type BrokerOptions, brokerConfigOf, withStoreOrBroker } from "../broker-store.ts";
import { examples, type Outcome, run } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable } from "../output/table.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withStoreOrBroker(command).action((options: BrokerOptions) => run(shell, options, () => check(shell, options)));
  examples(
    command,
    "claudemesh broker check",
    "claudemesh broker check --store postgres://mesh@db/mesh --json",
    "claudemesh broker check --broker http://127.0.0.1:7600 --admin-token-file broker.db.admin-token",
  );
}

async function check(shell: Shell, options: BrokerOptions): Promise<Outcome> {
  const asked = await askBroker<OrphanReport>(shell, options, "/v1/admin/check", "Checking a running broker");
  const report = asked ?? (await checkOffline(shell, options));
  if (!report.ok) process.exitCode = exitCodes.failed;
  return { value: report, text: describe(report, shell.columns) };
}

async function checkOffline(shell: Shell, options: BrokerOptions): Promise<OrphanReport> {
  const { checkStore } = await import("@claudemesh/broker/offline");
  return checkStore(brokerConfigOf(shell, options).store);
}

function describe(report: OrphanReport, columns: number | undefined): string {
  const rows = report.checks.reduce((sum, each) => sum + each.rows, 0);
  const looked = `${report.checks.length} rules, ${rows} comparisons, meshes: ${report.meshes}.`;
  if (report.ok) return `Everything fits together. ${looked}`;
  const broken = report.checks.filter(({ found }) => found > 0);
  return [
    formatTable(
      ["FOUND", "CHECK", "INVARIANT", "BROKEN RULE"],
      broken.map(({ name, invariant, found, rule }) => [String(found), name, invariant ?? "-", rule]),
      columns,
    ),
    ...broken.flatMap(({ name, examples: some }) => some.map((example) => `${name}: ${example}`)),
    looked,
    "Nothing was changed. What to do: docs/operations.md, Looking after a broker",
  ].join("\n");
}
