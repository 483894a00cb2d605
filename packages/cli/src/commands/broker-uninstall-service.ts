// `claudemesh broker uninstall-service`: stops the service and takes its file away. The home and everything in it stay.
import type { Command } from "commander";
import { defineUninstall } from "../service/service-commands.ts";
import { brokerTarget } from "../service/service-targets.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  defineUninstall(command, shell, brokerTarget);
}
