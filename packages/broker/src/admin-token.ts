// The token that lets its holder create meshes: made once, kept in a file that only its owner can read.
import { mintSecret } from "@claudemesh/members/credentials";
import { ensureSecretFile } from "./private-secret-file.ts";

export function ensureAdminToken(path: string): string {
  const token = ensureSecretFile(path, () => mintSecret("cma"));
  if (token === "") throw new Error(`${path} is empty; remove it and start again to make a new admin token.`);
  return token;
}
