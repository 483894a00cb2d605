// `claudemesh broker …`: running a broker, and looking after its store.

import { brokerOptions, chooseConfigFile, locationOf, readBrokerConfig } from "@claudemesh/broker/config";
import type { OrphanReport, StoreStats } from "@claudemesh/broker/offline";
import { type Command, Option } from "commander";
import { type Commands, type CommonOptions, examples, type Outcome, run, withJson, withTimes } from "../command.ts";
import { exitCodes, WrongUsage } from "../exit-codes.ts";
import {
  askBroker,
  type BrokerOptions,
  brokerConfigOf,
  type StoreOptions,
  withStore,
  withStoreOrBroker,
} from "../input/broker-store.ts";
import { type Confirmable, confirm, withYes } from "../input/confirm.ts";
import { jsonText } from "../output/printable.ts";
import { formatTable } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { urlToType } from "../share/local-url.ts";
import type { Shell } from "../shell.ts";
import { boundStop, stopSignal } from "../signals.ts";

export const commands = {
  "broker serve": defineServe,
  "broker check": defineCheck,
  "broker sweep": defineSweep,
  "broker stats": defineStats,
  "broker migrate": defineMigrate,
  "broker backup": defineBackup,
} satisfies Commands;

/** Callers that keep their connections and ask often learn of the stop from an answer, not from a cut. */
const lingerMs = 200;

type ServeOptions = CommonOptions & { readonly config?: string; readonly [flag: string]: string | boolean | undefined };

/** A broker in the foreground until SIGINT or SIGTERM. */
function defineServe(command: Command, shell: Shell): void {
  withJson(command).option(
    "--config <path>",
    "settings file (default: ./broker.toml where it is there and yours alone)",
  );
  for (const option of Object.values(brokerOptions)) {
    const fallback = option.fallback === undefined ? "" : `default: ${option.fallback}; `;
    const value = option.isSwitch ? "[value]" : "<value>";
    command.addOption(new Option(`--${option.flag} ${value}`, `${option.expects} (${fallback}${option.env})`));
  }
  command.action((options: ServeOptions) => run(shell, options, () => serve(shell, options)));
  examples(
    command,
    "claudemesh broker serve",
    "claudemesh broker serve --listen 127.0.0.1:0 --store sqlite:/tmp/b.db --json",
    "claudemesh broker serve --store postgres://mesh@db/mesh --redis redis://cache",
    "claudemesh broker serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --public-url https://mesh.example.org",
  );
}

async function serve(shell: Shell, options: ServeOptions): Promise<undefined> {
  const flags: Record<string, string | undefined> = {};
  for (const option of Object.values(brokerOptions)) {
    const value = options[camelCase(option.flag)];
    if (value !== undefined) flags[option.flag] = String(value);
  }
  const toml = chooseConfigFile(options.config);
  const { startBroker } = await import("@claudemesh/broker/start");
  const broker = await startBroker(readBrokerConfig(flags, shell.env, toml), { lingerMs });
  const stopped = stopSignal();
  // Without a certificate to read again, a terminal that goes away ends the broker as it ends any program.
  if (broker.url.startsWith("https:")) process.on("SIGHUP", broker.reloadTls);
  if (options.json === true) {
    const { url, publicUrl: public_url, adminTokenFile: admin_token_file, storePath: store } = broker;
    const ready = { event: "ready", url, public_url, admin_token_file, store, broker_key: broker.brokerKey };
    shell.out(jsonText({ ...ready, pid: process.pid }));
  } else {
    shell.out(`Broker at ${broker.url}\nStore       ${broker.storePath}\nAdmin token ${broker.adminTokenFile}`);
    if (broker.publicUrl !== broker.url) shell.out(`Invites say ${broker.publicUrl}`);
    const create = `claudemesh mesh create <name> --broker ${urlToType(broker)} --admin-token-file ${broker.adminTokenFile}`;
    shell.out(`Create a mesh with:  ${create}\nStop with Ctrl-C.`);
  }
  await stopped;
  boundStop();
  await broker.stop();
  return undefined;
}

function camelCase(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Do the rows of all tables fit together? Exit code 1 where anything does not. */
function defineCheck(command: Command, shell: Shell): void {
  withStoreOrBroker(command).action((options: BrokerOptions) => run(shell, options, () => checkRows(shell, options)));
  examples(
    command,
    "claudemesh broker check",
    "claudemesh broker check --store postgres://mesh@db/mesh --json",
    "claudemesh broker check --broker http://127.0.0.1:7600 --admin-token-file broker.db.admin-token",
  );
}

async function checkRows(shell: Shell, options: BrokerOptions): Promise<Outcome> {
  const answer = await askBroker<OrphanReport>(shell, options, "/v1/admin/check", "Checking a running broker");
  const report = answer ?? (await checkOffline(shell, options));
  if (!report.ok) process.exitCode = exitCodes.failed;
  return { value: report, text: describeCheck(report, shell.columns) };
}

async function checkOffline(shell: Shell, options: BrokerOptions): Promise<OrphanReport> {
  const { checkStore } = await import("@claudemesh/broker/offline");
  return checkStore(brokerConfigOf(shell, options).store);
}

function describeCheck(report: OrphanReport, columns: number | undefined): string {
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

type SweepOptions = BrokerOptions &
  Confirmable & { readonly messageRetentionDays?: string; readonly dedupeRetentionDays?: string };
type Swept = Readonly<Record<string, number>>;

/** Housekeeping now, to its end, and what has gone. */
function defineSweep(command: Command, shell: Shell): void {
  withYes(withStoreOrBroker(command));
  for (const option of [brokerOptions.messageRetention, brokerOptions.dedupe]) {
    command.option(`--${option.flag} <days>`, `with --store: ${option.expects} (default: as for broker serve)`);
  }
  command.action((options: SweepOptions) => run(shell, options, () => sweepRows(shell, options)));
  examples(
    command,
    "claudemesh broker sweep --broker http://127.0.0.1:7600 --admin-token-file broker.db.admin-token",
    "claudemesh broker sweep --store sqlite:./broker.db --message-retention-days 30 --json",
  );
}

async function sweepRows(shell: Shell, options: SweepOptions): Promise<Outcome> {
  const { messageRetentionDays, dedupeRetentionDays } = options;
  const hasDays = messageRetentionDays !== undefined || dedupeRetentionDays !== undefined;
  if (options.broker !== undefined && hasDays) {
    throw new WrongUsage(
      "A running broker sweeps by its own settings; give the days with --store, or to broker serve.",
    );
  }
  await confirm(shell, options, "Messages and records that are older than they have to be will be removed.");
  const answer = await askBroker<{ swept: Swept }>(shell, options, "/v1/admin/sweep", "Sweeping a running broker");
  const swept: Swept = answer?.swept ?? (await sweepOffline(shell, options));
  const rows = Object.entries(swept).map(([kind, count]) => [String(count), kind.replaceAll("_", " ")]);
  const text = rows.length === 0 ? "Nothing was due." : formatTable(["ROWS", "KIND"], rows, shell.columns);
  return { value: { swept }, text };
}

async function sweepOffline(shell: Shell, options: SweepOptions): Promise<Swept> {
  const { sweepStore } = await import("@claudemesh/broker/offline");
  const config = brokerConfigOf(shell, options, {
    [brokerOptions.messageRetention.flag]: options.messageRetentionDays,
    [brokerOptions.dedupe.flag]: options.dedupeRetentionDays,
  });
  return { ...(await sweepStore(config)) };
}

/** What a store holds, mesh by mesh. Reads the store itself, also while a broker serves on it. */
function defineStats(command: Command, shell: Shell): void {
  withTimes(withStore(command)).action((options: StoreOptions) => run(shell, options, () => showStats(shell, options)));
  examples(command, "claudemesh broker stats", "claudemesh broker stats --store postgres://mesh@db/mesh --json");
}

async function showStats(shell: Shell, options: StoreOptions): Promise<Outcome> {
  const { statsOfStore } = await import("@claudemesh/broker/offline");
  const stats = await statsOfStore(brokerConfigOf(shell, options).store);
  const meshes = stats.meshes.map((mesh) => ({
    mesh: mesh.name,
    mesh_id: mesh.id,
    rows: mesh.rows,
    last_history_id: mesh.lastHistoryId,
    oldest_unsettled_at: mesh.oldestUnsettledAtMs ?? null,
    oldest_message_at: mesh.oldestMessageAtMs ?? null,
    accepted_last_hour: mesh.acceptedLastHour,
    accepted_last_day: mesh.acceptedLastDay,
  }));
  const value = { store: stats.location, size_bytes: stats.sizeBytes, meshes };
  return {
    value,
    text: [`${stats.location}: ${stats.sizeBytes} bytes`, ...stats.meshes.map((m) => describeMesh(m, shell))].join(
      "\n\n",
    ),
  };
}

function describeMesh(mesh: StoreStats["meshes"][number], shell: Shell): string {
  const times = [
    ["oldest open delivery", timeCell(mesh.oldestUnsettledAtMs, "none")],
    ["oldest message", timeCell(mesh.oldestMessageAtMs, "none")],
    ["accepted, last hour and day", `${mesh.acceptedLastHour} and ${mesh.acceptedLastDay}`],
    ["last history id", String(mesh.lastHistoryId)],
  ];
  const rows = Object.entries(mesh.rows).map(([name, count]) => [name.replaceAll("_", " "), String(count)]);
  return formatTable([`mesh ${mesh.name}`, mesh.id], [...times, ...rows], shell.columns);
}

type MigrateOptions = StoreOptions & { readonly dryRun?: boolean };

/**
 * Brings a store up to the tables of this build. A broker does that when it starts; this is for doing it apart from
 * that, or for seeing what would be done.
 */
function defineMigrate(command: Command, shell: Shell): void {
  withStore(command)
    .option("--dry-run", "say what would run, and change nothing")
    .action((options: MigrateOptions) => run(shell, options, () => migrate(shell, options)));
  examples(
    command,
    "claudemesh broker migrate --store sqlite:./broker.db --dry-run",
    "claudemesh broker migrate --store postgres://mesh@db/mesh",
  );
}

async function migrate(shell: Shell, options: MigrateOptions): Promise<Outcome> {
  const { migrateStore } = await import("@claudemesh/broker/offline");
  const { store } = brokerConfigOf(shell, options);
  const dryRun = options.dryRun === true;
  const ran = await migrateStore(store, { dryRun });
  const migrations = ran.map(({ package: name, number, name: title }) => ({ package: name, number, name: title }));
  const storeAddress = locationOf(store);
  const value = { store: storeAddress, dry_run: dryRun, migrations };
  if (migrations.length === 0) return { value, text: `${storeAddress} is up to date.` };
  const lines = migrations.map((each) => `  ${each.package} ${String(each.number).padStart(4, "0")} ${each.name}`);
  return { value, text: [`${storeAddress}: ${dryRun ? "would run" : "has run"}`, ...lines].join("\n") };
}

/**
 * One moment of a SQLite store in a file of its own, while a broker serves on it or not. PostgreSQL has its own tool:
 * the command to run is printed, and the exit code is 2.
 */
function defineBackup(command: Command, shell: Shell): void {
  withStore(command)
    .argument("<file>", "where to put it; must not exist")
    .action((file: string, options: StoreOptions) => run(shell, options, () => backUp(shell, file, options)));
  examples(command, "claudemesh broker backup ./broker-monday.db --store sqlite:./broker.db");
  command.addHelpText("after", "\nFor a PostgreSQL store it prints the pg_dump command to run, and exits with 2.");
}

async function backUp(shell: Shell, file: string, options: StoreOptions): Promise<Outcome> {
  const { backUpStore } = await import("@claudemesh/broker/offline");
  const { store } = brokerConfigOf(shell, options);
  const outcome = await backUpStore(store, file);
  const storeAddress = locationOf(store);
  if (outcome.type === "copied") {
    const { file: target, bytes } = outcome;
    const text = `${target} holds ${storeAddress} (${bytes} bytes). Keep the admin token file and ${storeAddress}.broker-key apart: they are not in it.`;
    return { value: { store: storeAddress, file: target, bytes }, text };
  }
  process.exitCode = exitCodes.usage;
  const text = `${storeAddress} is a PostgreSQL, which is backed up with its own tool. Run:\n  ${outcome.command}`;
  return { value: { store: storeAddress, file: null, command: outcome.command }, text };
}
