// `claudemesh mesh invite`: one invite for one new key.
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { type Command, InvalidArgumentError } from "commander";
import { examples, run, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { asMember } from "../member.ts";
import { formatTime } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; validFor?: number; name?: string };

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .option("--valid-for <time>", "how long, as 30m, 12h or 7d (default: 7d)", parseDuration)
    .option("--name <member>", "the name that whoever joins by it gets (default: the joiner chooses)")
    .action((options: Options) => run(shell, options, () => invite(shell, options)));
  examples(
    command,
    "claudemesh mesh invite",
    "claudemesh mesh invite --name worker-1",
    "claudemesh mesh invite --valid-for 1h --json",
    "claudemesh mesh invite list",
  );
}

async function invite(shell: Shell, options: Options) {
  const input = {
    ...(options.validFor !== undefined && { expires_in_s: options.validFor }),
    ...(options.name !== undefined && { name: options.name }),
  };
  const value = (await asMember(shell, pathsFor(shell, options), (call) => call("invite.create", input))) as {
    invite: string;
    invite_id: string;
    expires_at: number;
  };
  const named = options.name === undefined ? "" : `, called ${options.name},`;
  const text = [
    value.invite,
    `It leads to ${decodeInvite(value.invite).broker}.`,
    `Good for one member${named} until ${formatTime(value.expires_at)}. It is not shown again.`,
    "It lets its holder in: hand it over in private, and join with it on standard input: claudemesh mesh join -",
    hint(shell, `Revoke it with: claudemesh mesh invite revoke ${value.invite_id}`),
  ];
  return { value, text: text.join("\n") };
}

const secondsPerUnit: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400 };

function parseDuration(text: string): number {
  const match = /^([1-9][0-9]{0,5})([mhd])$/.exec(text);
  const seconds = Number(match?.[1]) * (secondsPerUnit[match?.[2] ?? ""] ?? Number.NaN);
  if (!(seconds <= 2_592_000)) throw new InvalidArgumentError("It takes a time such as 30m, 12h or 7d, at most 30d.");
  return seconds;
}
