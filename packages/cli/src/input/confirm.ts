// Asking before what cannot be undone. Only a person at a terminal is asked: a script has no user to answer, and those
// that exist call these commands without --yes.
// Why: docs/decisions/0160.
import type { Command } from "commander";
import { neutraliseLine } from "../output/printable.ts";
import type { Shell } from "../shell.ts";

export type Confirmable = { readonly yes?: boolean };

export function withYes(command: Command): Command {
  return command.option("--yes", "do not ask first (asked is only where input and errors are a terminal)");
}

/** Returns where it is to be done, and throws where it is not. `what` is a sentence: what will be, and stay so. */
export async function confirm(shell: Pick<Shell, "ask">, { yes }: Confirmable, what: string): Promise<void> {
  if (yes === true || shell.ask === undefined) return;
  const answer = await shell.ask(`${neutraliseLine(what)} This cannot be undone. Go on? [y/N] `);
  if (/^\s*y(es)?\s*$/i.test(answer ?? "")) return;
  throw new Error("Nothing was changed, because it was not confirmed. Answer y, or give --yes.");
}
