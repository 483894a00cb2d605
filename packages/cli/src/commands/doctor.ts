// `claudemesh doctor`: what is wrong here, and what to do about it. Changes nothing.
import { listMeshes } from "@claudemesh/client/home";
import type { Command } from "commander";
import { type Commands, type CommonOptions, examples, type Outcome, run, withMesh } from "../command.ts";
import type { Judgement } from "../doctor/findings.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = { doctor: defineDoctor } satisfies Commands;

/** `mesh` is null for what concerns all of them. */
type Row = Judgement & { readonly mesh: string | null };

/**
 * Looks at everything that a daemon needs, says what each finding means, and what to type about it. Changes nothing.
 * Exit code 1 where something fails.
 */
function defineDoctor(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) => run(shell, options, () => examineHome(shell, options)));
  examples(command, "claudemesh doctor", "claudemesh doctor --mesh acme --json");
}

async function examineHome(shell: Shell, options: CommonOptions): Promise<Outcome> {
  const [{ gatherHome, gatherMesh }, { judgeHome }, { judgeFolder }, { judgeConnections }] = await Promise.all([
    import("../doctor/gather.ts"),
    import("../doctor/home-checks.ts"),
    import("../doctor/mesh-checks.ts"),
    import("../doctor/connection-checks.ts"),
  ]);
  const home = gatherHome(shell);
  const meshes = options.mesh === undefined ? listMeshes(shell.home) : [pathsFor(shell, options).mesh];
  const rows: Row[] = judgeHome(home).map((row) => ({ mesh: null, ...row }));
  if (meshes.length === 0 && home.homeFolder !== undefined) {
    const means = `${shell.home} belongs to no mesh.`;
    rows.push({
      mesh: null,
      check: "mesh",
      status: "fail",
      means,
      fix: "claudemesh up, or claudemesh mesh join <invite>",
    });
  }
  for (const mesh of meshes) {
    const facts = await gatherMesh(shell, mesh);
    rows.push(...[...judgeFolder(facts), ...judgeConnections(home, facts)].map((row) => ({ mesh, ...row })));
  }
  const ok = rows.every(({ status }) => status !== "fail");
  if (!ok) process.exitCode = exitCodes.failed;
  return { value: { ok, checks: rows }, text: describeFindings(rows, shell.columns) };
}

/** The commands stand below the table, where no terminal is too narrow for them; so does a reason that it has cut. */
function describeFindings(rows: readonly Row[], columns: number | undefined): string {
  const table = formatTable(
    ["", "MESH", "CHECK", "WHAT IT MEANS"],
    rows.map(({ status, mesh, check, means }) => [stateCell(status), mesh ?? "-", check, means]),
    columns,
  );
  const fixes = rows.flatMap(({ status, check, means, fix }) =>
    status === "ok" || fix === undefined ? [] : [`  ${check}: ${table.includes(means) ? "" : `${means}\n    `}${fix}`],
  );
  return fixes.length === 0 ? table : [table, "", "What to do:", ...fixes].join("\n");
}
