// `claudemesh mesh …`, what this home keeps: its meshes, the one that is meant where none is named, and the broker's
// key.

import { chooseMesh, listMeshes, type MeshPaths, meshPaths, readMeshConfig } from "@claudemesh/client/home";
import { readUsedMesh, writeUsedMesh } from "@claudemesh/client/internal/used-mesh";
import { MeshError } from "@claudemesh/protocol/errors";
import { isPublicKey } from "@claudemesh/protocol/messages/names";
import type { Command } from "commander";
import { type Commands, type CommonOptions, examples, type Outcome, run, withJson, withMesh } from "../command.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  "mesh trust-broker": defineTrustBroker,
  "mesh list": defineList,
  "mesh use": defineUse,
} satisfies Commands;

type TrustBrokerOptions = CommonOptions & { key?: string };

/** This home trusts another key of its broker from now on, because its user says so. */
function defineTrustBroker(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--key <hex>", "the key, as an owner says it (default: the one that what answers there proves to hold)")
    .action((options: TrustBrokerOptions) =>
      run(shell, options, () => trustBroker(pathsFor(shell, options), options.key)),
    );
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
  const proven = await proveKey(broker, id, key);
  const trusted = proven ?? key;
  if (trusted === undefined)
    throw new MeshError("broker_unreachable", `No answer from ${broker}; give the key with --key.`);
  const { pinBrokerKey } = await import("@claudemesh/client/home-trust");
  pinBrokerKey(paths, trusted);
  const was =
    before === undefined ? "It knew none before." : before === trusted ? "It did before." : `It was ${before}.`;
  const checked = proven === undefined ? ` ${broker} did not answer, so that nothing has proven it yet.` : "";
  return {
    value: { mesh: paths.mesh, broker, broker_key: trusted, before: before ?? null, proven: proven !== undefined },
    text: `This home trusts the broker with the key ${trusted}. ${was}${checked}`,
  };
}

/** Undefined where nothing answers, and the key is the caller's word alone. */
async function proveKey(broker: string, meshId: string, expected: string | undefined): Promise<string | undefined> {
  const { proveBrokerAt } = await import("@claudemesh/client/broker");
  try {
    return await proveBrokerAt(broker, { meshId, expected });
  } catch (error) {
    const isAway = error instanceof MeshError && error.code === "broker_unreachable";
    if (!isAway || expected === undefined) throw error;
    return undefined;
  }
}

/** What this home belongs to, and which of them commands are about where none is named. Asks no broker. */
function defineList(command: Command, shell: Shell): void {
  withJson(command).action((options: CommonOptions) => run(shell, options, () => listMeshesHere(shell)));
  examples(command, "claudemesh mesh list --json");
}

async function listMeshesHere(shell: Shell) {
  const [{ readMembershipEnd }, { formerMember }] = await Promise.all([
    import("@claudemesh/daemon/offline"),
    import("../daemon/daemon-access.ts"),
  ]);
  const current = meshWithoutName(shell);
  const items = listMeshes(shell.home).map((mesh) => {
    const paths = meshPaths(shell.home, mesh);
    const { id, broker, member_name, broker_key = null } = readMeshConfig(paths);
    const membership_ended_at = readMembershipEnd(paths) ?? null;
    return { mesh, mesh_id: id, broker, name: member_name, broker_key, current: mesh === current, membership_ended_at };
  });
  if (items.length === 0) {
    return { value: { items }, text: `No mesh in ${shell.home} yet. Start one with \`claudemesh up\`.` };
  }
  const rows = items.map((item) => [item.current ? "*" : "", item.mesh, item.name, item.broker]);
  const table = formatTable(["", "MESH", "YOU ARE", "BROKER"], rows, shell.columns);
  const lines = [
    table,
    ...items.flatMap(({ mesh, membership_ended_at: endedAt }) =>
      endedAt === null ? [] : [formerMember(mesh, endedAt)],
    ),
    ...(current === undefined ? ["Commands need --mesh here, or a choice: claudemesh mesh use <name>"] : []),
  ];
  return { value: { items }, text: lines.join("\n") };
}

/** Undefined where a command has to name one, or where what the environment or the home names is not there. */
function meshWithoutName(shell: Shell): string | undefined {
  try {
    return chooseMesh(shell.home, undefined, shell.env);
  } catch (error) {
    if (error instanceof MeshError && error.code === "not_found") return undefined;
    throw error;
  }
}

type UseOptions = CommonOptions & { readonly none?: boolean };

/** Which mesh this home's commands are about where none is named. */
function defineUse(command: Command, shell: Shell): void {
  withJson(command)
    .argument("[name]", "the mesh; see `claudemesh mesh list`")
    .option("--none", "forget the choice")
    .action((name: string | undefined, options: UseOptions) => {
      if ((name === undefined) === (options.none !== true)) {
        command.error("error: say which mesh: `claudemesh mesh use <name>`, or --none to forget the choice");
      }
      return run(shell, options, async () => useMesh(shell, name));
    });
  examples(command, "claudemesh mesh use acme", "claudemesh mesh use --none");
  command.addHelpText(
    "after",
    "\n--mesh goes first, then CLAUDEMESH_MESH, then this choice, then the only mesh there is.",
  );
}

function useMesh(shell: Shell, name: string | undefined) {
  const { home, env } = shell;
  const mesh = name === undefined ? undefined : chooseMesh(home, name);
  // A home of no mesh has nothing to forget, and need not even be there.
  if (mesh !== undefined || readUsedMesh(home) !== undefined) writeUsedMesh(home, mesh);
  const ofEnvironment = env.CLAUDEMESH_MESH;
  const text = [
    mesh === undefined ? "No mesh is chosen any more." : `Commands without --mesh are about ${mesh} from now on.`,
    ...(ofEnvironment ? [`In this shell CLAUDEMESH_MESH=${ofEnvironment} goes first.`] : []),
  ].join("\n");
  return { value: { mesh: mesh ?? null }, text };
}
