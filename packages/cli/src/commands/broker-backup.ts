// `claudemesh broker backup`: one moment of a SQLite store in a file of its own, while a broker serves on it or not.
// PostgreSQL has its own tool: the command to run is printed, and the exit code is 2.
import { placeOf } from "@claudemesh/broker/config";
import type { Command } from "commander";
import { brokerConfigOf, type StoreOptions, withStore } from "../broker-store.ts";
import { examples, type Outcome, run } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
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
  const place = placeOf(store);
  if (outcome.type === "copied") {
    const { file: target, bytes } = outcome;
    const text = `${target} holds ${place} (${bytes} bytes). Keep the admin token file and ${place}.broker-key apart: they are not in it.`;
    return { value: { store: place, file: target, bytes }, text };
  }
  process.exitCode = exitCodes.usage;
  const text = `${place} is a PostgreSQL, which is backed up with its own tool. Run:\n  ${outcome.command}`;
  return { value: { store: place, file: null, command: outcome.command }, text };
}
