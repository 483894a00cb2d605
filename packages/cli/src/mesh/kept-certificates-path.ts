// Where a home keeps certificates that it trusts, and which files count. Apart from what reads them: most homes have
// none, and every command asks.
import { existsSync } from "node:fs";
import { join } from "node:path";

export function keptCertificatesPath(home: string): string {
  return join(home, "trusted-ca.pem");
}

/** Of CLAUDEMESH_CA and of the home itself, where there are any. */
export function certificateFiles(env: Readonly<Record<string, string | undefined>>, home: string): string[] {
  const kept = keptCertificatesPath(home);
  return [env.CLAUDEMESH_CA ?? "", existsSync(kept) ? kept : ""].filter((path) => path !== "");
}
