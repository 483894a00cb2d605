// `claudemesh registrar compensate`: records, once, that a registration whose verification failed was made good.
import type { Command } from "commander";
import { examples, run, withMesh } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { type AuthorizationOptions, authorizationOf, registrarOf, withAuthorization } from "../registrar-access.ts";
import type { Shell } from "../shell.ts";

type Options = AuthorizationOptions & Confirmable & { mesh?: string; json?: boolean; key?: string; attempt?: string };

export function define(command: Command, shell: Shell): void {
  withYes(withAuthorization(withMesh(command), shell, "an approval with the purpose compensate for this key"))
    .argument("[key]", "the request that is made good")
    .option("--key <key>", "the same, as an option")
    .option("--attempt <id>", "a name for this execution (default: a new one)")
    .action((word: string | undefined, options: Options) => {
      const key = word ?? options.key;
      if (key === undefined) command.error("error: say which request: its key is missing");
      return run(shell, options, async () => {
        await confirm(shell, options, `${key} will be recorded as made good, once and for all.`);
        const authorization = authorizationOf(shell, options);
        const value = await registrarOf(shell, options).compensate(key, authorization, options.attempt);
        return { value, text: `${key} is compensated. Its effect stays taken: doing it again needs a new run.` };
      });
    });
  examples(command, "claudemesh registrar compensate release-42 --approval <id>");
}
