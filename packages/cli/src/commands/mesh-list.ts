// `claudemesh mesh list`: what this home belongs to, and which of them commands are about where none is named. Asks nobody.
import { chooseMesh, listMeshes, meshPaths, readMeshConfig } from "@claudemesh/client/home";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withJson } from "../command.ts";
import { formerMember } from "../daemon-access.ts";
import { formatTable } from "../output/table.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withJson(command).action((options: CommonOptions) => run(shell, options, async () => list(shell)));
  examples(command, "claudemesh mesh list --json");
}

async function list(shell: Shell) {
  const { readMembershipEnd } = await import("@claudemesh/daemon/offline");
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

/** Undefined: a command has to name one, or what the environment or the home names is not there. */
function meshWithoutName(shell: Shell): string | undefined {
  try {
    return chooseMesh(shell.home, undefined, shell.env);
  } catch (error) {
    if (error instanceof MeshError && error.code === "not_found") return undefined;
    throw error;
  }
}
