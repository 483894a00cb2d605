// `claudemesh space branch`: lists branches, makes one, or deletes one.
import { MeshError } from "@claudemesh/protocol/errors";
import { type Command, Option } from "commander";
import { type CommonOptions, examples, type Outcome, run } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { asMember } from "../member.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { parseSeq, withSpace, writeOnce } from "../space/space-access.ts";
import { readPages } from "../space/space-pages.ts";
import { branchName } from "../space/space-text.ts";

type Options = CommonOptions &
  Confirmable & { readonly from?: string; readonly at?: number; readonly delete?: boolean };
type Branch = {
  readonly name: string;
  readonly createdSeq: number;
  readonly fromBranch?: string;
  readonly atSeq?: number;
  readonly deleted?: true;
};

export function define(command: Command, shell: Shell): void {
  withYes(withSpace(command))
    .argument("[name]", "the branch to make or delete (default: list them)")
    .option("--from <branch>", "make it from this branch (default: main)")
    .option("--at <seq>", "make it from what that branch was after this seq (default: now)", parseSeq)
    .addOption(new Option("--delete", "delete it; it can still be read").conflicts(["from", "at"]))
    .action((space: string, name: string | undefined, options: Options) =>
      run(shell, options, () =>
        name === undefined ? list(shell, space, options) : write(shell, space, name, options),
      ),
    );
  examples(
    command,
    "claudemesh space branch plan",
    "claudemesh space branch plan draft",
    "claudemesh space branch plan hotfix --from draft --at 12",
    "claudemesh space branch plan draft --delete",
  );
}

async function list(shell: Shell, space: string, options: Options): Promise<Outcome> {
  const given = ["from", "at", "delete"].find((flag) => options[flag as keyof Options] !== undefined);
  if (given !== undefined) throw new MeshError("invalid_request", `--${given} goes with the name of a branch.`);
  const items = await asMember(shell, pathsFor(shell, options), (call) =>
    readPages<Branch>(call, "space.branches", { space }),
  );
  const rows = items.map(({ name, createdSeq, fromBranch, atSeq, deleted }) => [
    branchName(name),
    fromBranch === undefined ? "-" : `${branchName(fromBranch)} at ${atSeq}`,
    String(createdSeq),
    deleted === true ? "deleted" : "",
  ]);
  return { value: { items }, text: formatTable(["BRANCH", "FROM", "MADE AT SEQ", "STATE"], rows, shell.columns) };
}

async function write(shell: Shell, space: string, name: string, options: Options): Promise<Outcome> {
  const { from, at } = options;
  const isDelete = options.delete === true;
  if (isDelete) await confirm(shell, options, `The branch ${name} of ${space} will take no more writes.`);
  const input = {
    localSeq: 1,
    name,
    ...(from !== undefined && { fromBranch: from === "main" ? "" : from }),
    ...(at !== undefined && { atSeq: at }),
  };
  const operation = isDelete ? "space.branch.delete" : "space.branch.create";
  const accepted = await writeOnce(shell, pathsFor(shell, options), space, operation, input);
  const text = `Branch ${name} is ${isDelete ? "deleted" : "made"} at seq ${accepted.seq}.`;
  return { value: { name, ...accepted }, text };
}
