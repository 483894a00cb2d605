// `claudemesh broker serve`: a broker in the foreground until SIGINT or SIGTERM.

import { brokerOptions, chooseConfigFile, readBrokerConfig } from "@claudemesh/broker/config";
import { type Command, Option } from "commander";
import { type CommonOptions, examples, run, withJson } from "../command.ts";
import { jsonText } from "../output/printable.ts";
import { urlToType } from "../share/local-url.ts";
import type { Shell } from "../shell.ts";
import { boundStop, stopSignal } from "../signals.ts";

/** Callers that keep their connections and ask often learn of the stop from an answer, not from a cut. */
const lingerMs = 200;

type Options = CommonOptions & { readonly config?: string; readonly [flag: string]: string | boolean | undefined };

export function define(command: Command, shell: Shell): void {
  withJson(command).option(
    "--config <path>",
    "settings file (default: ./broker.toml where it is there and yours alone)",
  );
  for (const known of Object.values(brokerOptions)) {
    const fallback = known.fallback === undefined ? "" : `default: ${known.fallback}; `;
    const value = known.isSwitch ? "[value]" : "<value>";
    command.addOption(new Option(`--${known.flag} ${value}`, `${known.expects} (${fallback}${known.env})`));
  }
  command.action((options: Options) => run(shell, options, () => serve(shell, options)));
  examples(
    command,
    "claudemesh broker serve",
    "claudemesh broker serve --listen 127.0.0.1:0 --store sqlite:/tmp/b.db --json",
    "claudemesh broker serve --store postgres://mesh@db/mesh --redis redis://cache",
    "claudemesh broker serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --public-url https://mesh.example.org",
  );
}

async function serve(shell: Shell, options: Options): Promise<undefined> {
  const flags: Record<string, string | undefined> = {};
  for (const known of Object.values(brokerOptions)) {
    const value = options[camelCase(known.flag)];
    if (value !== undefined) flags[known.flag] = String(value);
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
