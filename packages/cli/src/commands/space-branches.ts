// `claudemesh space branch`, `merge` and `diff`: branches of a space.

import { readFileSync } from "node:fs";
import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonValue } from "@claudemesh/protocol/json";
import type { EncodedMergePlan } from "@claudemesh/protocol/spaces/merge";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Commands, type CommonOptions, examples, type Outcome, run } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Confirmable, confirm, withYes } from "../input/confirm.ts";
import { asMember } from "../mesh/member.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { commitOnce, parseSeq, readJson, withSpace, writeOnce } from "../space/space-access.ts";
import { readPages } from "../space/space-pages.ts";
import { branchName, type Conflict, describeConflict } from "../space/space-text.ts";

export const commands = {
  "space branch": defineBranch,
  "space merge": defineMerge,
  "space diff": defineDiff,
} satisfies Commands;

type BranchOptions = CommonOptions &
  Confirmable & { readonly from?: string; readonly at?: number; readonly delete?: boolean };
type Branch = {
  readonly name: string;
  readonly createdSeq: number;
  readonly fromBranch?: string;
  readonly atSeq?: number;
  readonly deleted?: true;
};

/** Lists branches, makes one, or deletes one. */
function defineBranch(command: Command, shell: Shell): void {
  withYes(withSpace(command))
    .argument("[name]", "the branch to make or delete (default: list them)")
    .option("--from <branch>", "make it from this branch (default: main)")
    .option("--at <seq>", "make it from what that branch was after this seq (default: now)", parseSeq)
    .addOption(new Option("--delete", "delete it; it can still be read").conflicts(["from", "at"]))
    .action((space: string, name: string | undefined, options: BranchOptions) =>
      run(shell, options, () =>
        name === undefined ? listBranches(shell, space, options) : writeBranch(shell, space, name, options),
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

async function listBranches(shell: Shell, space: string, options: BranchOptions): Promise<Outcome> {
  const flag = ["from", "at", "delete"].find((name) => options[name as keyof BranchOptions] !== undefined);
  if (flag !== undefined) throw new MeshError("invalid_request", `--${flag} goes with the name of a branch.`);
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

async function writeBranch(shell: Shell, space: string, name: string, options: BranchOptions): Promise<Outcome> {
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

type MergeOptions = CommonOptions & {
  readonly into: string;
  readonly ours?: boolean;
  readonly theirs?: boolean;
  readonly resolve?: ReadonlyMap<string, string>;
  readonly dryRun?: boolean;
};
type Resolutions = { readonly [id: string]: JsonValue };
type Plan = EncodedMergePlan;

/** Another member may write between proposal and commit. */
const triesMax = 5;

/**
 * Brings one branch's changes into another, in one commit. What both changed is shown side by side, and merged only
 * with a resolution.
 */
function defineMerge(command: Command, shell: Shell): void {
  withSpace(command)
    .argument("<source>", "the branch whose changes are merged")
    .option("--into <target>", "the branch that gets them", "main")
    .addOption(new Option("--ours", "where both changed an entity, keep that of the target").conflicts("theirs"))
    .option("--theirs", "where both changed an entity, take that of the source")
    .option("--resolve <id=file>", "the document for one entity, or null; may be repeated", parseResolve)
    .option("--dry-run", "show what would be merged, and commit nothing")
    .action((space: string, source: string, options: MergeOptions) =>
      run(shell, options, () => mergeBranch(shell, space, source, options)),
    );
  examples(
    command,
    "claudemesh space merge plan draft --dry-run",
    "claudemesh space merge plan draft",
    "claudemesh space merge plan draft --theirs --resolve task:1=task-1.json",
  );
  command.addHelpText("after", conflictHelp);
}

const conflictHelp = `
A conflict that has no resolution ends the command with exit code 4 and commits nothing; the JSON is
{"status":"conflict","conflicts":[{"id":…,"source":…,"target":…,"ancestor":…}]}.`;

async function mergeBranch(shell: Shell, space: string, source: string, options: MergeOptions): Promise<Outcome> {
  const paths = pathsFor(shell, options);
  const target = options.into;
  const propose = async (resolutions?: Resolutions) =>
    (await asMember(shell, paths, (call) =>
      call("space.merge.propose", { space, source, target, ...(resolutions !== undefined && { resolutions }) }),
    )) as Plan;
  for (let tries = 1; ; tries += 1) {
    let plan = await propose();
    if (plan.status === "conflict") {
      const { resolutions, open } = resolveConflicts(plan.conflicts, options);
      if (open.length > 0) return showConflicts(shell, open, source, target);
      plan = await propose(resolutions);
    }
    if (plan.status === "up_to_date") return { value: plan, text: `${target} has all of ${source} already.` };
    if (plan.status === "conflict") throw new MeshError("conflict_error", "The branches change too fast; try again.");
    const { merged, proposal } = plan;
    const list = merged.map((id) => `  ${id}`).join("\n");
    if (options.dryRun === true) {
      return { value: { status: "ready", merged }, text: `Would be merged into ${target}:\n${list}` };
    }
    try {
      const { seq } = await commitOnce(shell, paths, space, proposal as never);
      return { value: { status: "merged", seq, merged }, text: `Merged into ${target} at seq ${seq}:\n${list}` };
    } catch (error) {
      const isStale = error instanceof MeshError && error.code === "conflict_error";
      if (!isStale || tries === triesMax) throw error;
    }
  }
}

/** `open`: conflicts that nothing resolves. */
function resolveConflicts(conflicts: readonly Conflict[], options: MergeOptions) {
  const resolutions: Record<string, JsonValue> = {};
  const open: Conflict[] = [];
  for (const conflict of conflicts) {
    const file = options.resolve?.get(conflict.id);
    if (file !== undefined)
      resolutions[conflict.id] = readJson(readFileSync(file, "utf8"), `resolution of ${conflict.id}`);
    else if (options.ours === true) resolutions[conflict.id] = conflict.target;
    else if (options.theirs === true) resolutions[conflict.id] = conflict.source;
    else open.push(conflict);
  }
  return { resolutions, open };
}

function showConflicts(shell: Shell, conflicts: readonly Conflict[], source: string, target: string): Outcome {
  process.exitCode = exitCodes.conflict;
  const shown = conflicts.map((conflict) => describeConflict(conflict, { source, target }, shell.columns));
  const next = "Nothing was merged. Resolve with --ours, --theirs, or --resolve <id>=<file with the document or null>.";
  return { value: { status: "conflict", conflicts }, text: [...shown, next].join("\n\n") };
}

function parseResolve(text: string, before: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> {
  // An id may hold the sign, and a path seldom does.
  const at = text.lastIndexOf("=");
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError("It takes <id>=<file>.");
  return new Map(before).set(text.slice(0, at), text.slice(at + 1));
}

type DiffOptions = CommonOptions & { readonly into: string };
type Diff = Readonly<Record<"added" | "removed" | "modified", readonly string[]>>;

/** What a branch has changed since it and another had the same. */
function defineDiff(command: Command, shell: Shell): void {
  withSpace(command)
    .argument("<source>", "the branch whose changes are shown")
    .option("--into <target>", "the branch that they would be merged into", "main")
    .action((space: string, source: string, options: DiffOptions) =>
      run(shell, options, async () => {
        const input = { space, source, target: options.into };
        const diff = (await asMember(shell, pathsFor(shell, options), (call) => call("space.diff", input))) as Diff;
        const lines = (mark: string, ids: readonly string[]) => ids.map((id) => `${mark} ${id}`);
        const all = [...lines("+", diff.added), ...lines("-", diff.removed), ...lines("~", diff.modified)];
        return { value: diff, text: all.length === 0 ? `${source} has changed nothing.` : all.join("\n") };
      }),
    );
  examples(command, "claudemesh space diff plan draft", "claudemesh space diff plan main --into draft --json");
}
