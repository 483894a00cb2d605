// `claudemesh daemon install-service`: writes a unit for systemd or a property list for launchd and has it started,
// where the service manager is there. Again changes nothing more.
import type { Command } from "commander";
import { examples, type Outcome, run, withMesh } from "../command.ts";
import { isFetchedByNpx } from "../launcher.ts";
import { findCiVariable } from "../service/ci-environment.ts";
import { installService, type ServiceReport } from "../service/install-service.ts";
import type { ServicePlan } from "../service/service-plan.ts";
import { createServicePorts } from "../service/service-ports.ts";
import { explainDenied, planServiceHere } from "../service/this-machine.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; system?: boolean; print?: boolean; force?: boolean };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--system", "from boot on, as the owner of the home; needs root")
    .option("--print", "show the file and change nothing")
    .option("--force", "also in CI, and over a file that was not written for this home")
    .action((options: Options) => run(shell, options, () => install(shell, options)));
  examples(
    command,
    "claudemesh daemon install-service",
    "claudemesh daemon install-service --mesh acme --print",
    "sudo env CLAUDEMESH_HOME=/srv/mesh claudemesh daemon install-service --system",
  );
}

async function install(shell: Shell, options: Options): Promise<Outcome> {
  const paths = pathsFor(shell, options);
  const plan = planServiceHere(shell, paths, options.system === true ? "system" : "user");
  const { kind, scope, name, path, text } = plan;
  if (options.print === true) return { value: { kind, scope, name, path, text }, text: text.trimEnd() };
  if (options.force !== true) refuseShortLived(shell);
  const ports = createServicePorts(paths, shell.env);
  let report: ServiceReport;
  try {
    report = await installService(plan, ports, options.force === true);
  } catch (error) {
    throw explainDenied(error, shell, plan, ["daemon", "install-service", "--system", "--mesh", paths.mesh]);
  }
  return { value: { kind, scope, name, path, ...report }, text: describe(plan, report) };
}

/** A service outlives what it is installed from. */
function refuseShortLived(shell: Shell): void {
  const ci = findCiVariable(shell.env);
  if (ci !== undefined) {
    throw new Error(`${ci} is set, and a service would outlive this CI job. Give --force if you mean it.`);
  }
  if (isFetchedByNpx()) {
    throw new Error(
      "This claudemesh lives in npx's cache, which npm may empty at any time: run `npm install --global claudemesh` and use that one, or give --force.",
    );
  }
}

function describe(plan: ServicePlan, report: ServiceReport): string {
  const said = {
    started: `${plan.name} is started, and will be again after the next ${plan.scope === "user" ? "login" : "boot"}.`,
    restarted: `${plan.name} is restarted with the new file.`,
    running: `${plan.name} is running.`,
    stopped: `${plan.name} is stopped.`,
    "not started": `${plan.name} is not started yet.`,
  }[report.service];
  const file = report.file === "written" ? `Wrote ${plan.path}` : `${plan.path} is as it should be.`;
  const less =
    report.confinement === "basic"
      ? ["This host gives its users no namespaces, so the service is shut in less far; docs/service.md has more."]
      : [];
  const next = report.next.length === 0 ? [] : ["Next:", ...report.next.map((line) => `  ${line}`)];
  return [file, said, ...less, ...next, ...(plan.advice === undefined ? [] : [plan.advice])].join("\n");
}
