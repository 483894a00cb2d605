// `claudemesh registrar status`: what became of a request, for whoever does not know.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { registrarOf } from "../registrar-access.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<key>", "the request's key")
    .action((key: string, options: CommonOptions) =>
      run(shell, options, async () => {
        const value = await registrarOf(shell, options).status(key);
        const { registration, attempts, state, verification, compensation } = value;
        const lines = [
          `State         ${state}`,
          ...(registration === undefined
            ? ["Nothing was committed under this key: the request may be made, or made again."]
            : [
                `Registration  ${registration.registration_id}`,
                `Effect        ${registration.operation} ${registration.target} (run ${registration.run_id})`,
                `Artifact      ${registration.artifact_hash}`,
                `Attempts      ${attempts.recorded}, retries ${attempts.retries}`,
                ...(verification?.reasons ?? []).map((reason) => `Failed        ${reason} (${verification?.verifier})`),
                ...(compensation === undefined ? [] : [`Made good     under approval ${compensation.approval_id}`]),
              ]),
        ];
        return { value, text: lines.join("\n") };
      }),
    );
  examples(command, "claudemesh registrar status release-42", "claudemesh registrar status release-42 --json");
}
