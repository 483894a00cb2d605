// `claudemesh mesh list`: what this home belongs to, and which of them commands are about where none is named. Asks nobody.
import { chooseMesh, listMeshes, meshPaths, readMeshConfig } from "@claudemesh/client/home";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withJson } from "../command.ts";
import { formatTable } from "../output/table.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withJson(command).action((options: CommonOptions) => run(shell, options, async () => list(shell)));
  examples(command, "claudemesh mesh list --json");
}

function list(shell: Shell) {
  const current = meshWithoutName(shell);
  const items = listMeshes(shell.home).map((mesh) => {
    const { id, broker, member_name, broker_key = null } = readMeshConfig(meshPaths(shell.home, mesh));
    return { mesh, mesh_id: id, broker, name: member_name, broker_key, current: mesh === current };
  });
  if (items.length === 0) {
    return { value: { items }, text: `No mesh in ${shell.home} yet. Start one with \`claudemesh up\`.` };
  }
  const rows = items.map((item) => [item.current ? "*" : "", item.mesh, item.name, item.broker]);
  const table = formatTable(["", "MESH", "YOU ARE", "BROKER"], rows, shell.columns);
  const next = "Commands need --mesh here, or a choice: claudemesh mesh use <name>";
  return { value: { items }, text: current === undefined ? `${table}\n${next}` : table };
}

/** Undefined: a command has to name one, or what the environment or the home names is not there. */
function meshWithoutName(shell: Shell): string | undefined {
  try {
    return chooseMesh(shell.home, undefined, shell.env);
  } catch (error) {
    if (error instanceof MeshError && error.code === "not_found") return undefined;
    throw error;
  }
}
