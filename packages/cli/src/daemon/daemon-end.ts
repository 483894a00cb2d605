// With which exit code a process ends whose daemon ended by itself. One that another daemon of its key has replaced ends with a
// code of its own, after which a service manager does not start it again: the two would replace each other for ever.
import { isReplaced } from "@claudemesh/client/internal/last-run";
import { exitCodes } from "../exit-codes.ts";

/** For launchd, which starts again whatever ends with another code than 0. */
export const endsForGoodVariable = "CLAUDEMESH_REPLACED_EXIT";

export function exitCodeOfEnd(
  { exitCode, reason }: { readonly exitCode: number; readonly reason: string },
  env: Readonly<Record<string, string | undefined>>,
): number {
  if (exitCode === 0) return exitCodes.done;
  if (!isReplaced(reason)) return exitCodes.failed;
  return env[endsForGoodVariable] === "0" ? exitCodes.done : exitCodes.conflict;
}
