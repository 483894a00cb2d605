// Which store, or which broker, a command for operators is about: the options that all of them share.
import { type BrokerConfig, brokerOptions, chooseConfigFile, readBrokerConfig } from "@claudemesh/broker/config";
import type { Command } from "commander";
import type { CommonOptions } from "../command.ts";
import { withJson } from "../command.ts";
import { WrongUsage } from "../exit-codes.ts";
import type { Shell } from "../shell.ts";
import { adminTokenHelp, readAdminToken } from "./secret-input.ts";

export type StoreOptions = CommonOptions & { readonly store?: string; readonly config?: string };
export type BrokerOptions = StoreOptions & { readonly broker?: string; readonly adminTokenFile?: string };

/** A running broker is asked for as long as it works. */
const adminTimeoutMs = 6 * 3_600_000;

export function withStore(command: Command): Command {
  return withJson(command)
    .option("--store <store>", `${brokerOptions.store.expects} (default: as for broker serve)`)
    .option("--config <path>", "the broker's settings file (default: ./broker.toml where it is there and yours alone)");
}

export function withStoreOrBroker(command: Command): Command {
  return withStore(command)
    .option("--broker <url>", "ask the broker that is running there, instead of opening its store")
    .option("--admin-token-file <path>", `with --broker: ${adminTokenHelp}`);
}

export function brokerConfigOf(
  shell: Shell,
  options: StoreOptions,
  flags: Readonly<Record<string, string | undefined>> = {},
): BrokerConfig {
  return readBrokerConfig({ store: options.store, ...flags }, shell.env, chooseConfigFile(options.config));
}

/** Undefined where no broker was named. */
export async function askBroker<Body>(
  shell: Shell,
  options: BrokerOptions,
  path: "/v1/admin/sweep" | "/v1/admin/check",
  what: string,
): Promise<Body | undefined> {
  const { broker, adminTokenFile } = options;
  if (broker === undefined) {
    if (adminTokenFile !== undefined) throw new WrongUsage("--admin-token-file goes with --broker <url>.");
    return undefined;
  }
  if (options.store !== undefined) throw new WrongUsage("Give --store or --broker, not both.");
  const { callBrokerAdmin } = await import("@claudemesh/client/internal/broker-admin");
  const adminToken = readAdminToken(shell, adminTokenFile, what);
  return (await callBrokerAdmin({ broker, adminToken, path, timeoutMs: adminTimeoutMs })) as Body;
}
