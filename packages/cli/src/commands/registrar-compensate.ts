// `claudemesh registrar compensate`: records, once, that a registration whose verification failed was made good.
import type { Command } from "commander";
import { examples, run, withMesh } from "../command.ts";
import { nonceOf, registrarOf } from "../registrar-access.ts";
import type { Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; key: string; approval: string; nonce?: string; attempt?: string };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .requiredOption("--key <key>", "the request that is made good")
    .requiredOption("--approval <id>", "an approval with the purpose compensate for this key")
    .option("--nonce <nonce>", "its nonce (or CLAUDEMESH_REGISTRAR_NONCE, which no list of processes shows)")
    .option("--attempt <id>", "a name for this execution (default: a new one)")
    .action((options: Options) =>
      run(shell, options, async () => {
        const { key, approval, nonce, attempt } = options;
        const authorization = { approval_id: approval, authorization_nonce: nonceOf(shell, nonce) };
        const value = await registrarOf(shell, options).compensate(key, authorization, attempt);
        return { value, text: `${key} is compensated. Its effect stays taken: doing it again needs a new run.` };
      }),
    );
  examples(command, "claudemesh registrar compensate --key release-42 --approval <id>");
}
