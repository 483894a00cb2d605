// `claudemesh registrar approve`: an owner's signature under exactly one registration or compensation.
import { type Command, Option } from "commander";
import { examples, run, withMesh } from "../command.ts";
import { parseValidity } from "../duration.ts";
import { hint } from "../hints.ts";
import { type EffectOptions, effectOf, registrarOf, withEffect } from "../registrar-access.ts";
import type { Shell } from "../shell.ts";

type Options = EffectOptions & {
  mesh?: string;
  json?: boolean;
  validFor: number;
  purpose: "register" | "compensate";
  key?: string;
  approval?: string;
};

export function define(command: Command, shell: Shell): void {
  withEffect(withMesh(command))
    .addOption(
      new Option("--valid-for <time>", "how long its nonce is good, such as 30m or 7d")
        .argParser(parseValidity)
        .default(3_600_000, "1h"),
    )
    .addOption(new Option("--purpose <word>", "what it allows").choices(["register", "compensate"]).default("register"))
    .option("--key <key>", "with --purpose compensate: the request that is made good")
    .option("--approval <id>", "an id of your own choice, which nothing else has")
    .action((options: Options) => run(shell, options, () => approve(shell, options)));
  examples(
    command,
    "claudemesh registrar approve --operation release --target prod --file dist/app.tgz --run-id 42",
    "claudemesh registrar approve --purpose compensate --key release-42 --operation release --target prod --artifact-hash <hex> --run-id 42",
  );
}

async function approve(shell: Shell, options: Options) {
  const { purpose, key, approval, validFor } = options;
  const nowMs = Date.now();
  const value = await registrarOf(shell, options).approve({
    ...(await effectOf(options)),
    ...(approval === undefined ? {} : { approval_id: approval }),
    purpose,
    ...(key === undefined ? {} : { logical_request_key: key }),
    // Clocks differ by a little, and an approval is meant to be good at once.
    not_before: nowMs - 60_000,
    not_after: nowMs + validFor,
  });
  const { approval_id, authorization_nonce } = value;
  const shown =
    authorization_nonce === undefined
      ? "It was approved before, and its nonce is not shown again; revoke it and approve anew if it was lost."
      : `Nonce     ${authorization_nonce}\n${hint(shell, `It is not shown again. Withdraw it with: claudemesh registrar revoke ${approval_id}`)}`;
  return { value, text: `Approval  ${approval_id}\n${shown}` };
}
