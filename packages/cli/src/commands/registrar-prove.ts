// `claudemesh registrar prove`: whether a store's live schema proves single use, criterion by criterion. It looks at
// the store itself, not at a broker, and changes nothing.

import { existsSync } from "node:fs";
import { brokerOptions, readBrokerConfig } from "@claudemesh/broker/config";
import type { Command } from "commander";
import { type Commands, examples, run, withJson } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable } from "../output/table.ts";
import type { Shell } from "../shell.ts";

export const commands = {
  "registrar prove": defineProve,
} satisfies Commands;

type Options = { json?: boolean; store?: string; config?: string };

/**
 * Whether a store's live schema proves single use, criterion by criterion. It looks at the store itself, not at a
 * broker, and changes nothing.
 */
function defineProve(command: Command, shell: Shell): void {
  const { store } = brokerOptions;
  withJson(command)
    .option("--store <value>", `${store.expects} (default: ${store.fallback}; ${store.env})`)
    .option("--config <path>", "settings file of the broker (default: ./broker.toml where it exists)")
    .action((options: Options) => run(shell, options, () => prove(shell, options)));
  examples(
    command,
    "claudemesh registrar prove",
    "claudemesh registrar prove --store sqlite:./broker.db --json",
    "claudemesh registrar prove --store postgres://mesh@db/mesh",
  );
  command.addHelpText("after", "\nExit codes: 0 every criterion holds, 1 at least one does not.");
}

async function prove(shell: Shell, options: Options) {
  const toml = options.config ?? (existsSync("broker.toml") ? "broker.toml" : undefined);
  const config = readBrokerConfig({ store: options.store }, shell.env, toml);
  const { proveStore } = await import("@claudemesh/broker/offline");
  const proof = await proveStore(config.store);
  if (!proof.fit) process.exitCode = exitCodes.failed;
  const rows = proof.criteria.map(({ criterion, title, holds }) => [`(${criterion})`, holds ? "ok" : "FAIL", title]);
  const faults = proof.criteria.flatMap(({ missing, forbidden }) => [
    ...missing.map((fact) => `missing: ${fact}`),
    ...forbidden.map((fact) => `must not be: ${fact}`),
  ]);
  const text = [
    formatTable(["", "", "CRITERION"], rows, shell.columns),
    ...new Set(faults),
    ...proof.notes,
    proof.fit
      ? "The registrar opens on this store."
      : "The registrar stays closed on this store (REPLAY_SURFACE_NOT_FIT).",
  ];
  return { value: proof, text: text.join("\n") };
}
