// `claudemesh broker migrate`: brings a store up to the tables of this build. A broker does that when it starts; this is
// for doing it apart from that, or for seeing what would be done.
import { placeOf } from "@claudemesh/broker/config";
import type { Command } from "commander";
import { brokerConfigOf, type StoreOptions, withStore } from "../broker-store.ts";
import { examples, type Outcome, run } from "../command.ts";
import type { Shell } from "../shell.ts";

type Options = StoreOptions & { readonly dryRun?: boolean };

export function define(command: Command, shell: Shell): void {
  withStore(command)
    .option("--dry-run", "say what would run, and change nothing")
    .action((options: Options) => run(shell, options, () => migrate(shell, options)));
  examples(
    command,
    "claudemesh broker migrate --store sqlite:./broker.db --dry-run",
    "claudemesh broker migrate --store postgres://mesh@db/mesh",
  );
}

async function migrate(shell: Shell, options: Options): Promise<Outcome> {
  const { migrateStore } = await import("@claudemesh/broker/offline");
  const { store } = brokerConfigOf(shell, options);
  const dryRun = options.dryRun === true;
  const ran = await migrateStore(store, { dryRun });
  const migrations = ran.map(({ package: name, number, name: title }) => ({ package: name, number, name: title }));
  const place = placeOf(store);
  const value = { store: place, dry_run: dryRun, migrations };
  if (migrations.length === 0) return { value, text: `${place} is up to date.` };
  const lines = migrations.map((each) => `  ${each.package} ${String(each.number).padStart(4, "0")} ${each.name}`);
  return { value, text: [`${place}: ${dryRun ? "would run" : "has run"}`, ...lines].join("\n") };
}
