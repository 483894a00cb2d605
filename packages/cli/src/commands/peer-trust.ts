// `claudemesh peer trust`: a member's key is another one, and that is right: sends to its name go there from now on.
import { MeshError } from "@claudemesh/protocol/errors";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<name>", "the member's name")
    .action((given: string, options: CommonOptions) =>
      run(shell, options, () =>
        withDaemon(shell, pathsFor(shell, options), async (daemon) => {
          const name = given.replace(/^@/, "");
          const before = expectBody(await daemon.pin(name));
          const pubkey = before.current_pubkey;
          if (pubkey === null) {
            const message = `${name} has ${before.fingerprint} here, and no member, or more than one, has the name now.`;
            throw new MeshError("destination_not_found", message, { name });
          }
          const value = expectBody(await daemon.trustPeer(name, { pubkey }));
          const was = before.trust === "changed" ? ` (it was ${before.fingerprint})` : "";
          const text = `Messages to ${name} go to the key ${value.fingerprint}${was}. Compare it: claudemesh peer verify ${name}`;
          return { value, text: hint(shell, text) };
        }),
      ),
    );
  examples(command, "claudemesh peer trust bob");
}
