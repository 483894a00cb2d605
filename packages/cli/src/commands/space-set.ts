// `claudemesh space set`: an entity's whole document.
import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonObject, JsonValue } from "@claudemesh/protocol/json";
import type { Command } from "commander";
import { examples, run } from "../command.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { readJson, type WriteOptions, withCondition, withSpace, writeEntity } from "../space/space-access.ts";

type Options = WriteOptions & { readonly document?: boolean };

export function define(command: Command, shell: Shell): void {
  withCondition(
    withSpace(command)
      .argument("<id>", "id of the entity, such as task:1")
      .argument("<json>", "its value as JSON, or - to read it from standard input"),
  )
    .option("--document", "the JSON is the whole document, and not only what stands under value")
    .action((space: string, id: string, json: string, options: Options) =>
      run(shell, options, async () => {
        const value = documentOf(readJson(json, "value"), options.document === true);
        const accepted = await writeEntity(shell, pathsFor(shell, options), space, { op: "set", id, value }, options);
        return { value: { id, ...accepted }, text: `${id} is set at seq ${accepted.seq}.` };
      }),
    );
  examples(
    command,
    `claudemesh space set plan task:1 '{"title":"write the docs","owner":null}'`,
    "claudemesh space set plan task:1 '1' --if-seq 0",
    "jq -n '{n:1}' | claudemesh space set plan task:1 - --branch draft --json",
  );
  command.addHelpText("after", valuesHelp);
}

const valuesHelp = `
Where --if-seq does not hold the exit code is 4, and the JSON says what has changed. Leaves that JSON does not have are
written as {"/":{"bigint@1":"12"}}, {"/":{"undefined@1":null}} and {"/":{"bytes@1":"<base64url>"}}.`;

function documentOf(json: JsonValue, isWhole: boolean): JsonObject {
  if (!isWhole) return { value: json };
  if (typeof json === "object" && json !== null && !Array.isArray(json)) return json;
  throw new MeshError("invalid_request", "A document is a JSON object.", { field: "document" });
}
