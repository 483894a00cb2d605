// `claudemesh mesh trust-broker`: this home trusts another key of its broker from now on, because somebody says so.
import { proveBrokerAt } from "@claudemesh/client/broker";
import { type MeshPaths, readMeshConfig } from "@claudemesh/client/home";
import { pinBrokerKey } from "@claudemesh/client/home-trust";
import { MeshError } from "@claudemesh/protocol/errors";
import { isPublicKey } from "@claudemesh/protocol/messages/names";
import type { Command } from "commander";
import { type CommonOptions, examples, type Outcome, run, withMesh } from "../command.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = CommonOptions & { key?: string };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--key <hex>", "the key, as an owner says it (default: the one that what answers there proves to hold)")
    .action((options: Options) => run(shell, options, () => trustBroker(pathsFor(shell, options), options.key)));
  examples(command, "claudemesh mesh trust-broker --key 3b6a…", "claudemesh mesh trust-broker");
  command.addHelpText(
    "after",
    "\nWithout --key it believes whatever answers at the broker's address now: compare the key with an owner's\n(`claudemesh daemon status` shows it). A daemon that runs takes the change up at its next try.",
  );
}

async function trustBroker(paths: MeshPaths, key: string | undefined): Promise<Outcome> {
  if (key !== undefined && !isPublicKey(key)) {
    throw new MeshError("invalid_request", "A broker's key is 64 characters of lower-case hex.", { field: "key" });
  }
  const { broker, id, broker_key: before } = readMeshConfig(paths);
  const proven = await prove(broker, id, key);
  const trusted = proven ?? key;
  if (trusted === undefined)
    throw new MeshError("broker_unreachable", `No answer from ${broker}; give the key with --key.`);
  pinBrokerKey(paths, trusted);
  const was =
    before === undefined ? "It knew none before." : before === trusted ? "It did before." : `It was ${before}.`;
  const checked = proven === undefined ? ` ${broker} did not answer, so that nothing has proven it yet.` : "";
  return {
    value: { mesh: paths.mesh, broker, broker_key: trusted, before: before ?? null, proven: proven !== undefined },
    text: `This home trusts the broker with the key ${trusted}. ${was}${checked}`,
  };
}

/** Undefined: nothing answers, and the key is the caller's word alone. */
async function prove(broker: string, meshId: string, expected: string | undefined): Promise<string | undefined> {
  try {
    return await proveBrokerAt(broker, { meshId, expected });
  } catch (error) {
    const isAway = error instanceof MeshError && error.code === "broker_unreachable";
    if (!isAway || expected === undefined) throw error;
    return undefined;
  }
}
