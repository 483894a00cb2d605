// `claudemesh registrar register`: one artifact, once. The same command again, after whatever happened, is safe.
import type { Command } from "commander";
import { examples, run, withMesh } from "../command.ts";
import { parseValidity } from "../duration.ts";
import {
  type AuthorizationOptions,
  authorizationOf,
  type EffectOptions,
  effectOf,
  endWith,
  registrarOf,
  withAuthorization,
  withEffect,
} from "../registrar-access.ts";
import type { Shell } from "../shell.ts";

type Options = EffectOptions &
  AuthorizationOptions & { mesh?: string; json?: boolean; key: string; attempt?: string; expiresIn?: number };

export function define(command: Command, shell: Shell): void {
  withEffect(withMesh(command)).requiredOption("--key <key>", "names this registration, the same in every retry");
  withAuthorization(command, shell, "the owner's approval")
    .option("--attempt <id>", "a name for this execution (default: a new one)")
    .option("--expires-in <time>", "refuse it after so long, such as 10m", parseValidity)
    .action((options: Options) =>
      run(shell, options, async () => {
        const { key, attempt, expiresIn } = options;
        return endWith(
          shell,
          await registrarOf(shell, options).register({
            ...(await effectOf(options)),
            logical_request_key: key,
            ...authorizationOf(shell, options),
            ...(attempt === undefined ? {} : { attempt_id: attempt }),
            ...(expiresIn === undefined ? {} : { expires_at: Date.now() + expiresIn }),
          }),
        );
      }),
    );
  examples(
    command,
    "claudemesh registrar register --key release-42 --approval <id> --operation release --target prod --file dist/app.tgz --run-id 42",
  );
  command.addHelpText(
    "after",
    "\nExit codes: 0 registered and verified, 1 refused or verification failed, 4 taken by something else, 6 not verified yet.",
  );
}
