// The version of this package, for logs, the hello and `/v1/version`, where the caller names no other.
import { readFileSync } from "node:fs";

export function packageVersion(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
