// `claudemesh webhook create`: again with the same url, topics and secret is fine; with others it is a conflict.
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { webhookName } from "../argument-forms.ts";
import { topicName } from "../bare-names.ts";
import { examples, run, withMesh } from "../command.ts";
import { hint } from "../hints.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; url: string; topic?: string[]; secretFile?: string };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<id>", "name of the webhook", webhookName)
    .requiredOption("--url <url>", "where messages are posted to, https:// or http://")
    .option("--topic <name...>", "only these topics (default: every topic)")
    .option(
      "--secret-file <path>",
      "a secret of your own, 16–256 printable characters (default: a new one, shown once)",
    )
    .action((id: string, options: Options) => run(shell, options, () => create(shell, id, options)));
  examples(
    command,
    "claudemesh webhook create ci --url https://ci.example.org/hook --topic builds",
    "claudemesh webhook create audit --url https://log.example.org/in --secret-file hook.secret --json",
  );
}

async function create(shell: Shell, id: string, options: Options) {
  const secret = options.secretFile === undefined ? undefined : readFileSync(options.secretFile, "utf8").trim();
  const input = {
    webhook: id,
    url: options.url,
    ...(options.topic === undefined ? {} : { topics: [...new Set(options.topic.map(topicName))] }),
    ...(secret === undefined ? {} : { secret }),
  };
  const value = (await asMember(shell, pathsFor(shell, options), (call) => call("webhook.create", input))) as {
    secret?: string;
  };
  const lines = [`Webhook ${id} is there: topic messages from now on go to ${options.url}.`];
  if (secret === undefined && value.secret !== undefined) {
    lines.push(`Its secret, for checking signatures; it is not shown again:\n  ${value.secret}`);
  }
  return { value, text: [...lines, hint(shell, `See what arrives:  claudemesh webhook deliveries ${id}`)].join("\n") };
}
