// `claudemesh space …`: the spaces of a mesh, and reading and writing the entities of one.

import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonObject, JsonValue } from "@claudemesh/protocol/json";
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import { Argument, type Command } from "commander";
import { type Commands, type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { type Confirmable, confirm, withYes } from "../input/confirm.ts";
import { asMember } from "../mesh/member.ts";
import { formatTable } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";
import {
  type Entity,
  parseSeq,
  readJson,
  type SpaceOptions,
  type WriteOptions,
  withBranch,
  withCondition,
  withSpace,
  writeEntity,
} from "../space/space-access.ts";
import { listEntities, readPages } from "../space/space-pages.ts";
import { describeEntity, entityTable } from "../space/space-text.ts";

export const commands = {
  "space create": defineCreate,
  "space ls": defineLs,
  "space policy": definePolicy,
  "space get": defineGet,
  "space set": defineSet,
  "space patch": definePatch,
  "space delete": defineDelete,
  "space list": defineList,
} satisfies Commands;

/** Again is fine. */
function defineCreate(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<name>", "name of the space")
    .action((name: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("space.create", { name }));
        return {
          value,
          text: hint(shell, `Space ${name} is there. Write to it with: claudemesh space set ${name} task:1 '{"n":1}'`),
        };
      }),
    );
  examples(command, "claudemesh space create plan");
}

type SpaceItem = {
  readonly name: string;
  readonly seq: number;
  readonly signedWrites: string;
  readonly createdAt: number;
};

/** The spaces of a mesh. */
function defineLs(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) =>
        readPages<SpaceItem>(call, "space.list", {}),
      );
      const rows = items.map(({ name, seq, signedWrites, createdAt }) => [
        name,
        String(seq),
        signedWrites,
        timeCell(createdAt),
      ]);
      const table = formatTable(["SPACE", "SEQ", "SIGNED WRITES", "CREATED"], rows, shell.columns);
      return {
        value: { items },
        text: items.length === 0 ? hint(shell, "No space yet: claudemesh space create <name>") : table,
      };
    }),
  );
  examples(command, "claudemesh space ls", "claudemesh space ls --json");
}

/** Whether a space takes commits without a signature. For owners. */
function definePolicy(command: Command, shell: Shell): void {
  withSpace(command)
    .addArgument(
      new Argument("<signed-writes>", "whether a commit has to carry its author's signature").choices([
        "optional",
        "required",
      ]),
    )
    .action((space: string, signedWrites: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const input = { space, signedWrites };
        const value = await asMember(shell, pathsFor(shell, options), (call) => call("space.policy", input));
        return { value, text: `Signed writes are ${signedWrites} in ${space}.` };
      }),
    );
  examples(command, "claudemesh space policy plan required");
}

type GetOptions = SpaceOptions & { readonly at?: number };

/** One entity, now or as of a seq. */
function defineGet(command: Command, shell: Shell): void {
  withBranch(withSpace(command).argument("<id>", "id of the entity, such as task:1"))
    .option("--at <seq>", "as it was after this seq", parseSeq)
    .action((space: string, entityId: string, options: GetOptions) =>
      run(shell, options, async () => {
        const { branch, at } = options;
        const input = {
          space,
          entityId,
          ...(branch !== undefined && { branch }),
          ...(at !== undefined && { atSeq: at }),
        };
        const entity = (await asMember(shell, pathsFor(shell, options), (call) =>
          call("space.entity", input),
        )) as Entity;
        return { value: entity, text: describeEntity(entity) };
      }),
    );
  examples(
    command,
    "claudemesh space get plan task:1",
    "claudemesh space get plan task:1 --branch draft --at 12 --json",
  );
}

type SetOptions = WriteOptions & { readonly document?: boolean };

/** An entity's whole document. */
function defineSet(command: Command, shell: Shell): void {
  withCondition(
    withSpace(command)
      .argument("<id>", "id of the entity, such as task:1")
      .argument("<json>", "its value as JSON, or - to read it from standard input"),
  )
    .option("--document", "the JSON is the whole document, and not only what stands under value")
    .action((space: string, id: string, json: string, options: SetOptions) =>
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

type Patches = NonNullable<EncodedCommit["operations"][number]["patches"]>;

/** Changes parts of an entity's document. */
function definePatch(command: Command, shell: Shell): void {
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

/** An entity. Its history stays. */
function defineDelete(command: Command, shell: Shell): void {
  withYes(withCondition(withSpace(command).argument("<id>", "id of the entity, such as task:1"))).action(
    (space: string, id: string, options: WriteOptions & Confirmable) =>
      run(shell, options, async () => {
        await confirm(shell, options, `${id} of ${space} will be deleted; only its history will tell what it held.`);
        const accepted = await writeEntity(shell, pathsFor(shell, options), space, { op: "delete", id }, options);
        return { value: { id, ...accepted }, text: `${id} is deleted at seq ${accepted.seq}.` };
      }),
  );
  examples(command, "claudemesh space delete plan task:1", "claudemesh space delete plan task:1 --if-seq 7");
}

type ListOptions = SpaceOptions & { readonly prefix: string };

/** Entities by prefix, as of one moment. Not a transactional read. */
function defineList(command: Command, shell: Shell): void {
  withBranch(withSpace(command))
    .option("--prefix <prefix>", "only ids that begin with this", "")
    .action((space: string, options: ListOptions) =>
      run(shell, options, async () => {
        const { branch, prefix } = options;
        const query = { space, prefix, ...(branch !== undefined && { branch }) };
        const list = await asMember(shell, pathsFor(shell, options), (call) => listEntities(call, query));
        const text = list.items.length === 0 ? "Nothing there." : entityTable(list.items, shell.columns);
        return { value: list, text };
      }),
    );
  examples(command, "claudemesh space list plan", "claudemesh space list plan --prefix task: --json");
}
