// `claudemesh daemon accept-host`: this is the right host for the keys of this home. The daemon must not be running.
import type { AcceptedHost } from "@claudemesh/daemon/offline";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const { acceptHost } = await import("@claudemesh/daemon/offline");
      const value = await acceptHost(pathsFor(shell, options));
      return { value, text: describe(value) };
    }),
  );
  examples(command, "claudemesh daemon accept-host", "claudemesh daemon accept-host --mesh acme --json");
}

function describe({ mesh, was, fingerprint }: AcceptedHost): string {
  const before = {
    changed: "They were used on another host before; stop the daemon there for good, or both will fail.",
    same: "That was so already.",
    unknown: "Whether it was another one before cannot be told.",
    "not recorded": "None was written down before.",
    unreadable: "What was written down before could not be read.",
  }[was];
  const nameless = "This host has nothing to recognise it by, so that a copy of this home would not be noticed.";
  const next = `Start the daemon:  claudemesh daemon up --mesh ${mesh}`;
  return [
    `The keys of ${mesh} belong to this host now. ${before}`,
    ...(fingerprint === null ? [nameless] : []),
    next,
  ].join("\n");
}
