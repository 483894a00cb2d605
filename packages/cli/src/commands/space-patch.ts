// `claudemesh space patch`: changes parts of an entity's document.
import { MeshError } from "@claudemesh/protocol/errors";
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import type { Command } from "commander";
import { examples, run } from "../command.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { readJson, type WriteOptions, withCondition, withSpace, writeEntity } from "../space/space-access.ts";

type Patches = NonNullable<EncodedCommit["operations"][number]["patches"]>;

export function define(command: Command, shell: Shell): void {
  withCondition(
    withSpace(command)
      .argument("<id>", "id of the entity, such as task:1")
      .argument("<patches>", "a JSON array of patches, or - to read it from standard input"),
  ).action((space: string, id: string, json: string, options: WriteOptions) =>
    run(shell, options, async () => {
      const patches = readJson(json, "list of patches");
      if (!Array.isArray(patches)) {
        throw new MeshError("invalid_request", "The patches are a JSON array.", { field: "patches" });
      }
      const operation = { op: "patch", id, patches: patches as unknown as Patches } as const;
      const accepted = await writeEntity(shell, pathsFor(shell, options), space, operation, options);
      return { value: { id, ...accepted }, text: `${id} is patched at seq ${accepted.seq}.` };
    }),
  );
  examples(
    command,
    `claudemesh space patch plan task:1 '[{"op":"replace","path":"/value/owner","value":"alice"}]' --if-seq 7`,
    `claudemesh space patch plan list:1 '[{"op":"splice","path":"/value/items","index":0,"remove":1,"add":[]}]'`,
  );
  command.addHelpText(
    "after",
    "\nPaths begin at the document: its data is under /value. docs/spaces-patches.md has all patches.",
  );
}
