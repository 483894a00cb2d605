// Puts a planned service in place, or takes it away. Doing either again changes nothing more. Where the service manager
// is not there, nothing is run, and the report says what to type where it is.
// Why: docs/decisions/0080.
import type { ServiceCommand, ServicePlan } from "./service-plan.ts";

export type ServicePorts = {
  /** Undefined where there is no such file. */
  readonly read: (path: string) => string | undefined;
  /** Whole or not at all, readable by every user, folders made as needed. */
  readonly write: (path: string, text: string) => void;
  readonly remove: (path: string) => void;
  readonly isFolder: (path: string) => boolean;
  /** Is there such a program on PATH? */
  readonly hasProgram: (name: string) => boolean;
  /** What it complained about; undefined when it ended well. */
  readonly run: (words: readonly string[]) => string | undefined;
  /** Does the program run already, in this service or outside it? */
  readonly isUp: () => Promise<boolean>;
  /** Resolves once it does not. */
  readonly untilGone: () => Promise<void>;
  /** What to type to end the one that runs outside the service. */
  readonly handOver: string;
};

export type ServiceReport = {
  readonly file: "written" | "unchanged" | "removed" | "absent";
  readonly service: "started" | "restarted" | "running" | "stopped" | "not started";
  /** What is left to type, in order. */
  readonly next: readonly string[];
  /** The host refused the full confinement, and the service runs with what needs no namespaces. */
  readonly confinement?: "basic";
};

export async function installService(plan: ServicePlan, ports: ServicePorts, force: boolean): Promise<ServiceReport> {
  const installed = ports.read(plan.path);
  if (installed !== undefined) refuseForeign(plan, installed, force);
  // What an earlier start has shown this host to need is not tried again.
  const isBasic = installed !== undefined && installed === plan.basicText;
  const file = isBasic || installed === plan.text ? "unchanged" : "written";
  if (file === "written") ports.write(plan.path, plan.text);
  if (!isManagerThere(plan, ports)) {
    return { file, service: "not started", next: [...plan.register, plan.start].map(asLine) };
  }
  for (const command of plan.register) runOrThrow(command, ports);
  if (isRunning(plan, ports)) {
    if (file === "unchanged") return { file, service: "running", next: [] };
    runOrThrow(plan.halt, ports);
    await ports.untilGone();
    return { file, service: "restarted", next: [], ...start(plan, ports) };
  }
  // A service that finds its folder taken would only fail again and again.
  if (await ports.isUp()) {
    return { file, service: "not started", next: [ports.handOver, asLine(plan.start)] };
  }
  return { file, service: "started", next: [], ...start(plan, ports) };
}

/** The manager says at once whether it could set the service up; only then is the daemon's own program run. */
function start(plan: ServicePlan, ports: ServicePorts): Pick<ServiceReport, "confinement"> {
  const { basicText } = plan;
  if (basicText === undefined || ports.read(plan.path) === basicText) {
    runOrThrow(plan.start, ports);
    return {};
  }
  if (ports.run(plan.start) === undefined) return {};
  // It would go on trying by itself.
  ports.run(plan.halt);
  ports.write(plan.path, basicText);
  for (const command of plan.register) runOrThrow(command, ports);
  runOrThrow(plan.start, ports);
  return { confinement: "basic" };
}

export function uninstallService(plan: ServicePlan, ports: ServicePorts, force: boolean): ServiceReport {
  const installed = ports.read(plan.path);
  if (installed === undefined) return { file: "absent", service: "not started", next: [] };
  refuseForeign(plan, installed, force);
  const managed = isManagerThere(plan, ports);
  if (managed && (!plan.disable.onlyIfRunning || isRunning(plan, ports))) runOrThrow(plan.disable.command, ports);
  ports.remove(plan.path);
  if (!managed) return { file: "removed", service: "not started", next: plan.forget.map(asLine) };
  for (const command of plan.forget) runOrThrow(command, ports);
  return { file: "removed", service: "stopped", next: [] };
}

function refuseForeign(plan: ServicePlan, installed: string, force: boolean): void {
  if (force || installed.includes(plan.mark)) return;
  throw new Error(
    `${plan.path} was not written for this home and is left alone. Look at it; --force treats it as ours.`,
  );
}

function isManagerThere(plan: ServicePlan, ports: ServicePorts): boolean {
  const [program = ""] = plan.start;
  return ports.hasProgram(program) && (plan.aliveFolder === undefined || ports.isFolder(plan.aliveFolder));
}

function isRunning(plan: ServicePlan, ports: ServicePorts): boolean {
  return ports.run(plan.probe) === undefined;
}

function runOrThrow(command: ServiceCommand, ports: ServicePorts): void {
  const complaint = ports.run(command);
  if (complaint === undefined) return;
  throw new Error(`\`${asLine(command)}\` failed: ${complaint} Once that is solved, run this command again.`);
}

function asLine(command: ServiceCommand): string {
  return command.join(" ");
}
