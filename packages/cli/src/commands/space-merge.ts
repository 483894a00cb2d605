// `claudemesh space merge`: brings one branch's changes into another, in one commit. What both changed is shown side by
// side, and merged only with a resolution.
import { readFileSync } from "node:fs";
import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonValue } from "@claudemesh/protocol/json";
import type { EncodedMergePlan } from "@claudemesh/protocol/spaces/merge";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type CommonOptions, examples, type Outcome, run } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { commitOnce, readJson, withSpace } from "../space/space-access.ts";
import { type Conflict, describeConflict } from "../space/space-text.ts";

type Options = CommonOptions & {
  readonly into: string;
  readonly ours?: boolean;
  readonly theirs?: boolean;
  readonly resolve?: ReadonlyMap<string, string>;
  readonly dryRun?: boolean;
};
type Resolutions = { readonly [id: string]: JsonValue };
type Plan = EncodedMergePlan;

/** Somebody may write between proposal and commit. */
const triesMax = 5;

export function define(command: Command, shell: Shell): void {
  withSpace(command)
    .argument("<source>", "the branch whose changes are merged")
    .option("--into <target>", "the branch that gets them", "main")
    .addOption(new Option("--ours", "where both changed an entity, keep that of the target").conflicts("theirs"))
    .option("--theirs", "where both changed an entity, take that of the source")
    .option("--resolve <id=file>", "the document for one entity, or null; may be repeated", parseResolve)
    .option("--dry-run", "show what would be merged, and commit nothing")
    .action((space: string, source: string, options: Options) =>
      run(shell, options, () => merge(shell, space, source, options)),
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

async function merge(shell: Shell, space: string, source: string, options: Options): Promise<Outcome> {
  const paths = pathsFor(shell, options);
  const target = options.into;
  const propose = async (resolutions?: Resolutions) =>
    (await asMember(shell, paths, (call) =>
      call("space.merge.propose", { space, source, target, ...(resolutions !== undefined && { resolutions }) }),
    )) as Plan;
  for (let tries = 1; ; tries += 1) {
    let plan = await propose();
    if (plan.status === "conflict") {
      const { resolutions, open } = resolve(plan.conflicts, options);
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
function resolve(conflicts: readonly Conflict[], options: Options) {
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
