// `claudemesh daemon uninstall-service`: stops the service and takes its file away. The home and everything in it stay.
import { meshPaths } from "@claudemesh/client/home";
import type { Command } from "commander";
import { examples, type Outcome, run, withMesh } from "../command.ts";
import { type ServiceReport, uninstallService } from "../service/install-service.ts";
import { createServicePorts } from "../service/service-ports.ts";
import { explainDenied, planServiceHere } from "../service/this-machine.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; system?: boolean; force?: boolean };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--system", "the service that runs from boot on; needs root")
    .option("--force", "also a file that was not written for this home")
    .action((options: Options) => run(shell, options, async () => uninstall(shell, options)));
  examples(
    command,
    "claudemesh daemon uninstall-service",
    "sudo env CLAUDEMESH_HOME=/srv/mesh claudemesh daemon uninstall-service --system",
  );
}

function uninstall(shell: Shell, options: Options): Outcome {
  // A mesh that has left this home may have left its service behind, so a name is taken as it is given.
  const paths = options.mesh === undefined ? pathsFor(shell, options) : meshPaths(shell.home, options.mesh);
  const plan = planServiceHere(shell, paths, options.system === true ? "system" : "user");
  const { kind, scope, name, path } = plan;
  let report: ServiceReport;
  try {
    report = uninstallService(plan, createServicePorts(paths, shell.env), options.force === true);
  } catch (error) {
    throw explainDenied(error, shell, plan, ["daemon", "uninstall-service", "--system", "--mesh", paths.mesh]);
  }
  const text =
    report.file === "absent"
      ? `There is no ${path}; nothing to do.`
      : [`Removed ${path}. The daemon's files in ${paths.dir} stay.`, ...nextLines(report)].join("\n");
  return { value: { kind, scope, name, path, ...report }, text };
}

function nextLines(report: ServiceReport): string[] {
  return report.next.length === 0 ? [] : ["Next:", ...report.next.map((line) => `  ${line}`)];
}
