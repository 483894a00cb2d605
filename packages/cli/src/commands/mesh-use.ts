// `claudemesh mesh use`: which mesh this home's commands are about where none is named.
import { chooseMesh } from "@claudemesh/client/home";
import { readUsedMesh, writeUsedMesh } from "@claudemesh/client/used-mesh";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withJson } from "../command.ts";
import type { Shell } from "../shell.ts";

type Options = CommonOptions & { readonly none?: boolean };

export function define(command: Command, shell: Shell): void {
  withJson(command)
    .argument("[name]", "the mesh; see `claudemesh mesh list`")
    .option("--none", "forget the choice")
    .action((name: string | undefined, options: Options) => {
      if ((name === undefined) === (options.none !== true)) {
        command.error("error: say which mesh: `claudemesh mesh use <name>`, or --none to forget the choice");
      }
      return run(shell, options, async () => use(shell, name));
    });
  examples(command, "claudemesh mesh use acme", "claudemesh mesh use --none");
  command.addHelpText(
    "after",
    "\n--mesh goes first, then CLAUDEMESH_MESH, then this choice, then the only mesh there is.",
  );
}

function use(shell: Shell, name: string | undefined) {
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
