// `claudemesh mesh set`: changes one setting of the mesh, for every broker and every member. Only an owner may.
import { isMeshSettingKey, meshSettingKeys, meshSettingSpecs } from "@claudemesh/protocol/messages/mesh-settings";
import { type Command, InvalidArgumentError } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<key>", `${meshSettingKeys.join(", ")}`, parseKey)
    .argument("<value>", "what it is from now on; `default` sets it back")
    .action((key: string, text: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const input = { key, value: readValue(text) };
        const set = (await asMember(shell, pathsFor(shell, options), (call) => call("mesh.set", input))) as {
          value: string | number;
        };
        return { value: set, text: `${key} is ${set.value} now. It holds on every broker within a second.` };
      }),
    );
  const meanings = meshSettingKeys.map((key) => `  ${key.padEnd(14)} ${meshSettingSpecs[key].meaning}`);
  command.addHelpText("after", `\nKeys:\n${meanings.join("\n")}`);
  examples(
    command,
    "claudemesh mesh set dm_policy any",
    "claudemesh mesh set max_topics 500",
    "claudemesh mesh set max_topics default",
  );
}

function parseKey(text: string): string {
  if (isMeshSettingKey(text)) return text;
  throw new InvalidArgumentError(`There are ${meshSettingKeys.join(", ")}.`);
}

/** Digits are a number; what a key takes is the broker's to say, which may know of another maximum. */
function readValue(text: string): string | number | null {
  if (text === "default") return null;
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : text;
}
