// Where a command finds the broker's admin token.
import { readFileSync } from "node:fs";
import { WrongUsage } from "./exit-codes.ts";
import type { Shell } from "./shell.ts";

export const adminTokenHelp = "the broker's admin token (or CLAUDEMESH_ADMIN_TOKEN holds the token itself)";

export function readAdminToken(shell: Shell, path: string | undefined, what: string): string {
  if (path !== undefined) return readFileSync(path, "utf8").trim();
  const token = shell.env.CLAUDEMESH_ADMIN_TOKEN;
  if (token !== undefined && token !== "") return token;
  throw new WrongUsage(
    `${what} needs the broker's admin token: give --admin-token-file <path> (the broker prints the path when it starts) or set CLAUDEMESH_ADMIN_TOKEN.`,
  );
}
