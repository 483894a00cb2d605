// `claudemesh … install-service` and `claudemesh … uninstall-service`, the same for the daemon, `up` and the broker: writes
// a unit for systemd or a property list for launchd and has it started where the service manager is there. Again changes
// nothing more.
import type { Command } from "commander";
import { type Commands, examples, type Outcome, run, withJson } from "../command.ts";
import { isFetchedByNpx } from "../launcher.ts";
import { findCiVariable } from "../service/ci-environment.ts";
import { installService, type ServiceReport, uninstallService } from "../service/install-service.ts";
import type { ServicePlan } from "../service/service-plan.ts";
import { createServicePorts } from "../service/service-ports.ts";
import { brokerTarget, daemonTarget, type ServiceTarget, upTarget } from "../service/service-targets.ts";
import { explainDenied, planServiceHere } from "../service/this-machine.ts";
import type { Shell } from "../shell.ts";

export const commands = {
  "up install-service": (command, shell) => defineInstall(command, shell, upTarget),
  "up uninstall-service": (command, shell) => defineUninstall(command, shell, upTarget),
  "daemon install-service": (command, shell) => defineInstall(command, shell, daemonTarget),
  "daemon uninstall-service": (command, shell) => defineUninstall(command, shell, daemonTarget),
  "broker install-service": (command, shell) => defineInstall(command, shell, brokerTarget),
  "broker uninstall-service": (command, shell) => defineUninstall(command, shell, brokerTarget),
} satisfies Commands;

type Common = { json?: boolean; system?: boolean; print?: boolean; force?: boolean };

function defineInstall<Options extends Common>(command: Command, shell: Shell, target: ServiceTarget<Options>): void {
  withJson(target.configure(target.choose(command)))
    .option("--system", "from boot on, as the owner of the home; needs root")
    .option("--print", "show the file and change nothing")
    .option("--force", "also in CI, and over a file that was not written for this home")
    .action((options: Options) => run(shell, options, () => install(shell, options, target)));
  examples(
    command,
    `claudemesh ${target.words} install-service`,
    `claudemesh ${target.words} install-service --print`,
    `sudo env CLAUDEMESH_HOME=/srv/mesh claudemesh ${target.words} install-service --system`,
  );
}

function defineUninstall<Options extends Common>(command: Command, shell: Shell, target: ServiceTarget<Options>): void {
  withJson(target.choose(command))
    .option("--system", "the service that runs from boot on; needs root")
    .option("--force", "also a file that was not written for this home")
    .action((options: Options) => run(shell, options, () => uninstall(shell, options, target)));
  examples(
    command,
    `claudemesh ${target.words} uninstall-service`,
    `sudo env CLAUDEMESH_HOME=/srv/mesh claudemesh ${target.words} uninstall-service --system`,
  );
}

async function install<Options extends Common>(
  shell: Shell,
  options: Options,
  target: ServiceTarget<Options>,
): Promise<Outcome> {
  const { program, served, chosen } = await target.resolve(shell, options, "install");
  const plan = planServiceHere(shell, program, options.system === true ? "system" : "user");
  const { kind, scope, name, path, text } = plan;
  if (options.print === true) return { value: { kind, scope, name, path, text }, text: text.trimEnd() };
  if (options.force !== true) refuseShortLived(shell);
  let report: ServiceReport;
  try {
    report = await installService(plan, createServicePorts(served, shell.env), options.force === true);
  } catch (error) {
    throw explainDenied(error, shell, plan, [...target.words.split(" "), "install-service", "--system", ...chosen]);
  }
  return { value: { kind, scope, name, path, ...report }, text: describeInstalled(plan, report) };
}

async function uninstall<Options extends Common>(
  shell: Shell,
  options: Options,
  target: ServiceTarget<Options>,
): Promise<Outcome> {
  const { program, served, kept, chosen } = await target.resolve(shell, options, "uninstall");
  const plan = planServiceHere(shell, program, options.system === true ? "system" : "user");
  const { kind, scope, name, path } = plan;
  let report: ServiceReport;
  try {
    report = uninstallService(plan, createServicePorts(served, shell.env), options.force === true);
  } catch (error) {
    throw explainDenied(error, shell, plan, [...target.words.split(" "), "uninstall-service", "--system", ...chosen]);
  }
  const text =
    report.file === "absent"
      ? `There is no ${path}; nothing to do.`
      : [`Removed ${path}. ${kept}`, ...nextLines(report)].join("\n");
  return { value: { kind, scope, name, path, ...report }, text };
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

function describeInstalled(plan: ServicePlan, report: ServiceReport): string {
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
  return [file, said, ...less, ...nextLines(report), ...(plan.advice === undefined ? [] : [plan.advice])].join("\n");
}

function nextLines(report: ServiceReport): string[] {
  return report.next.length === 0 ? [] : ["Next:", ...report.next.map((line) => `  ${line}`)];
}
