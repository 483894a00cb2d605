// `claudemesh broker install-service`.
import type { Command } from "commander";
import { defineInstall } from "../service/service-commands.ts";
import { brokerTarget } from "../service/service-targets.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  defineInstall(command, shell, brokerTarget);
}
