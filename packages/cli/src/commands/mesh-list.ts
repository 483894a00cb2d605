// `claudemesh mesh list`: what this home belongs to. Asks nobody.
import { listMeshes, meshPaths, readMeshConfig } from "@claudemesh/client/home";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withJson } from "../command.ts";
import { formatTable } from "../output/table.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withJson(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = listMeshes(shell.home).map((mesh) => {
        const { id, broker, member_name, broker_key = null } = readMeshConfig(meshPaths(shell.home, mesh));
        return { mesh, mesh_id: id, broker, name: member_name, broker_key };
      });
      const rows = items.map((item) => [item.mesh, item.name, item.broker]);
      const none = `No mesh in ${shell.home} yet. Start one with \`claudemesh up\`.`;
      const text = items.length === 0 ? none : formatTable(["MESH", "YOU ARE", "BROKER"], rows, shell.columns);
      return { value: { items }, text };
    }),
  );
  examples(command, "claudemesh mesh list --json");
}
