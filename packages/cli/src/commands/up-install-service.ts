// `claudemesh up install-service`.
import type { Command } from "commander";
import { defineInstall } from "../service/service-commands.ts";
import { upTarget } from "../service/service-targets.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  defineInstall(command, shell, upTarget);
}
