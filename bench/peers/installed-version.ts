// The version of a peer's own client, as it is installed here.
import { readFileSync } from "node:fs";

export function installedVersion(name: string): string {
  const path = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version;
}
