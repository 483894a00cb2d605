// Secrets that a command is given: on standard input, in a file or in the environment, where no list of processes shows them.
// As an argument they are taken too, for scripts that exist.

import { readFileSync } from "node:fs";
import { WrongUsage } from "../exit-codes.ts";
import type { Shell } from "../shell.ts";

export type SecretSources = {
  /** What the secret is called in messages. */
  readonly what: string;
  /** The argument or option; `-` is standard input. */
  readonly given: string | undefined;
  readonly file: string | undefined;
  readonly fileOption: string;
  readonly env: string;
};

/** Far above every secret of ours, so that a wrong file is not read to its end. */
const secretBytesMax = 65_536;

/** Undefined where it was not given at all. White space around it is none of it. */
export function readSecret(shell: Shell, sources: SecretSources): string | undefined {
  const { what, given, file, fileOption, env } = sources;
  if (given !== undefined && file !== undefined) throw new WrongUsage(`Give ${what} once: ${fileOption} goes alone.`);
  if (given === "-") return readText(what, 0, "standard input");
  if (given !== undefined) return given;
  if (file !== undefined) return readText(what, file, file);
  return shell.env[env] || undefined;
}

function readText(what: string, from: number | string, shown: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(from);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new WrongUsage(`${what} cannot be read from ${shown}: ${code ?? String(error)}.`);
  }
  const text = bytes.length > secretBytesMax ? "" : bytes.toString("utf8").trim();
  if (text === "") throw new WrongUsage(`${shown} holds no ${what.replace(/^the /, "")}.`);
  return text;
}

/** The same for an invite, which is needed. */
export function readInviteText(
  shell: Shell,
  sources: { readonly given: string | undefined; readonly file: string | undefined },
): string {
  const text = readSecret(shell, {
    ...sources,
    what: "the invite",
    fileOption: "--invite-file",
    env: "CLAUDEMESH_INVITE",
  });
  if (text !== undefined) return text;
  throw new WrongUsage(
    "The invite is missing: pipe it in with `-`, or give --invite-file <path>, or set CLAUDEMESH_INVITE.",
  );
}

export const adminTokenHelp = "the broker's admin token (or CLAUDEMESH_ADMIN_TOKEN holds the token itself)";

/** The broker's admin token, from its file or from the environment. */
export function readAdminToken(shell: Shell, path: string | undefined, what: string): string {
  if (path !== undefined) return readFileSync(path, "utf8").trim();
  const token = shell.env.CLAUDEMESH_ADMIN_TOKEN;
  if (token !== undefined && token !== "") return token;
  throw new WrongUsage(
    `${what} needs the broker's admin token: give --admin-token-file <path> (the broker prints the path when it starts) or set CLAUDEMESH_ADMIN_TOKEN.`,
  );
}
